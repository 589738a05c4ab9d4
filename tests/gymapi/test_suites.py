"""Task suites: classes, configurations and TorchScript written for the API run, and show their physics."""

from pathlib import Path

import numpy as np
import pytest

from pluriverse import gymapi, gymutil

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install pluriverse[torch]")

# Scripts seed NumPy's global generator, and PyTorch's TorchScript is deprecated.
# ruff: noqa: NPY002, N801
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")


@pytest.fixture(autouse=True)
def _seeds():
    np.random.seed(3)
    torch.manual_seed(3)


@pytest.fixture(scope="module")
def crawler_folder(tmp_path_factory):
    from tests.gymapi.suites.crawler import crawler_urdf

    folder = tmp_path_factory.mktemp("crawler")
    (folder / "crawler.urdf").write_text(crawler_urdf())
    return str(folder)


def test_poles_on_carts_of_random_sizes_fall(assets, monkeypatch):
    """Without efforts every pole falls, larger ones slower; those that fell are reset, alone."""
    from tests.gymapi.suites.cart import CONFIG, Cart

    monkeypatch.setattr(Cart, "asset_root", assets)
    task = Cart(CONFIG)
    masses = [task.gym.get_actor_rigid_body_properties(env, 0)[1].mass for env in task.envs]
    assert len(set(masses)) == 6
    scales = [task.gym.get_actor_scale(env, 0) for env in task.envs]
    assert len(set(scales)) == 6
    assert all(0.9 <= scale <= 1.1 for scale in scales)
    resets = torch.zeros(6)
    for _ in range(120):
        obs, reward, done, _ = task.step(torch.zeros((6, 1)))
        resets += done
        assert torch.isfinite(obs["obs"]).all()
        assert torch.equal(done == 1, reward == -2.0)
    assert (resets >= 1).all()
    # An effort to the right moves all carts to the right, lighter ones farther.
    task.reset_buf[:] = 1
    task.step(torch.ones((6, 1)))
    travelled = task.dof_pos[:, 0]
    for _ in range(3):
        task.step(torch.ones((6, 1)))
    assert (travelled > 0.0).all()


def test_crawlers_stand_and_turn_to_goals(crawler_folder, monkeypatch):
    """At rest they stand on their feet, goals stay where they are put, and all is finite when they move."""
    from tests.gymapi.suites.crawler import CONFIG, Crawler

    monkeypatch.setattr(Crawler, "asset_root", crawler_folder)
    task = Crawler(CONFIG)
    for _ in range(60):
        obs, _, done, _ = task.step(torch.zeros((4, 8)))
    assert done.sum() == 0
    height = task.roots[:, 0, 2]
    assert ((height > 0.25) & (height < 0.42)).all()
    # Sensors read all forces on their body, which at rest are in balance.
    weight = 9.81 * (6.0 + 4 * (0.6 + 0.6 + 0.1))
    assert (task.sensors[:, :, 2].abs() < 0.01 * weight).all()
    goals = task.roots[:, 1]
    np.testing.assert_allclose(torch.linalg.norm(goals[:, :2], dim=1), 2.0, rtol=1e-5)
    # What robots see of their goals is where these are.
    seen = obs["obs"][:, 10:13]
    expected = torch.linalg.norm(goals[:, :3] - task.roots[:, 0, :3], dim=1)
    np.testing.assert_allclose(torch.linalg.norm(seen, dim=1), expected, rtol=1e-5)
    for _ in range(60):
        obs, reward, _, _ = task.step(2.0 * torch.rand((4, 8)) - 1.0)
        assert torch.isfinite(obs["obs"]).all()
        assert torch.isfinite(reward).all()
    assert (task.efforts.abs() <= 30.0 + 1e-3).all()


@pytest.mark.parametrize("kind", ["trimesh", "heightfield"])
def test_walkers_stand_on_terrain_of_either_kind(crawler_folder, kind):
    """On all tiles they come to rest above the ground, with the friction of their env, on their feet."""
    from tests.gymapi.suites.walker import Walker, WalkerConfig

    class Config(WalkerConfig):
        class terrain(WalkerConfig.terrain):
            mesh_type = kind

        class env:
            num_envs = 6

    args = gymutil.parse_arguments("walker", args=["--sim_device", "cpu", "--pipeline", "cpu"])
    task = Walker(Config, crawler_folder, args)
    frictions = [task.gym.get_actor_rigid_shape_properties(env, 0)[0].friction for env in task.envs]
    np.testing.assert_allclose(frictions, task.friction[:6].flatten(), rtol=1e-6)
    masses = np.array(
        [sum(body.mass for body in task.gym.get_actor_rigid_body_properties(env, 0)) for env in task.envs]
    )
    assert len(set(masses.round(4))) == 6
    for _ in range(75):
        observations = task.step(torch.zeros((6, 8)))
        assert torch.isfinite(observations).all()
    clearance = task.root_states[:, 2] - task.measured_heights().max(dim=1).values
    assert (clearance > 0.1).all()
    speed = torch.linalg.norm(task.root_states[:, 7:10], dim=1)
    assert (speed < 0.05).all()
    carried = task.contact_forces[:, :, 2].sum(dim=1)
    np.testing.assert_allclose(carried, 9.81 * masses, rtol=0.05)
    feet = task.contact_forces[:, task.feet, 2].sum(dim=1)
    np.testing.assert_allclose(feet, carried, rtol=0.05)
    task.push(1.0)
    for _ in range(5):
        assert torch.isfinite(task.step(torch.randn((6, 8)))).all()
    assert task.gym.get_sim_params(task.sim).up_axis == gymapi.UP_AXIS_Z


def test_tasks_see_their_carts(assets, monkeypatch):
    """Images follow the carts: points of the pole are where its state says, in every env, and riders stay."""
    from tests.gymapi.suites.vision import CONFIG, VisionCart

    monkeypatch.setattr("sys.argv", ["task"])
    task = VisionCart(CONFIG, assets)
    efforts = torch.tensor([-60.0, 0.0, 60.0])
    for _ in range(15):
        obs = task.step(efforts)
    assert torch.isfinite(obs).all()
    assert not torch.equal(obs[0], obs[1])
    for index, env in enumerate(task.envs):
        points = task.points(index, 1).numpy() - np.array(list(task.gym.get_env_origin(env)))
        cart = float(task.dof_state[index, 0, 0])
        assert len(points) > 3
        # The side of the cart that the camera sees is a box of 0.5 x 0.3 x 0.2 at its position on the rail.
        assert np.abs(points[:, 1] - cart).max() < 0.15 + 1e-3
        assert np.abs(points[:, 2] - 1.0).max() < 0.1 + 1e-3
        rider = task.gym.get_camera_transform(task.sim, env, task.riders[index])
        np.testing.assert_allclose(list(rider.p), (-0.5, cart, 1.5), atol=1e-5)
        seen = task.gym.get_camera_image(task.sim, env, task.riders[index], gymapi.IMAGE_SEGMENTATION)
        assert (seen == 2).any(), "the pole stands before the rider"
    assert float(task.dof_state[0, 0, 0]) < -0.05 < 0.05 < float(task.dof_state[2, 0, 0])


def test_arms_reach_for_boxes_that_differ():
    """Hands come to be above the boxes, pointing down; boxes rest, each with a mass of its own."""
    from tests.gymapi.suites.reacher import Reacher, ReacherConfig

    task = Reacher(ReacherConfig, str(Path(__file__).resolve().parents[2] / "examples" / "gym" / "assets"))
    gym = task.gym
    frictions = [gym.get_actor_rigid_shape_properties(env, 1)[0].friction for env in task.envs]
    np.testing.assert_allclose(frictions, task.frictions, rtol=1.0e-6)
    masses = np.array([gym.get_actor_rigid_body_properties(env, 1)[0].mass for env in task.envs])
    assert len(set(masses)) == 4
    for _ in range(200):
        distance = task.step()
    assert (distance < 0.01).all()
    weight = 9.81 * torch.from_numpy(masses).float()
    torch.testing.assert_close(task.contacts[task.boxes][:, 2], weight, rtol=0.02, atol=0.0)
    # A reset of one env leaves the others where they are.
    before = task.dofs[1:, :, 0].clone()
    task.reset_idx(torch.tensor([0]))
    gym.refresh_dof_state_tensor(task.sim)
    torch.testing.assert_close(task.dofs[0, :, 0], task.rest, rtol=0.0, atol=0.06)
    assert torch.equal(task.dofs[1:, :, 0], before)
