"""Further tasks and scripts as strangers write them: YAML, levels, many robots, keys, options, modes."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pluriverse import gymapi, gymutil

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install pluriverse[torch]")

# Scripts seed NumPy's global generator, and PyTorch's TorchScript is deprecated.
# ruff: noqa: NPY002
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")

SUITES = Path(__file__).resolve().parent / "suites"
EXAMPLE_ASSETS = str(Path(__file__).resolve().parents[2] / "examples" / "gym" / "assets")


@pytest.fixture(autouse=True)
def _seeds():
    np.random.seed(3)
    torch.manual_seed(3)


@pytest.fixture(scope="module")
def robots(tmp_path_factory):
    from tests.gymapi.suites.crawler import crawler_urdf
    from tests.gymapi.suites.hand import hand_mjcf
    from tests.gymapi.suites.team import flyer_mjcf

    folder = tmp_path_factory.mktemp("robots")
    (folder / "crawler.urdf").write_text(crawler_urdf())
    (folder / "flyer.xml").write_text(flyer_mjcf())
    (folder / "hand.xml").write_text(hand_mjcf())
    return str(folder)


def test_hands_hold_cubes_that_are_pushed(robots):
    """Cubes stay in the hands, goals hover where they were put, and only the critic sees forces."""
    from tests.gymapi.suites.hand import HoldCube

    task = HoldCube(robots)
    assert task.sim_params.physx.max_depenetration_velocity == 1000.0  # YAML reads 1e3 as a word
    goals = task.begin[task.goal_indices, :3]
    for _ in range(40):
        obs, reward, done, _ = task.step(torch.zeros((4, 8)))
        assert torch.isfinite(task.states_buf).all()
    assert done.sum() == 0
    cubes = task.root_states[task.object_indices]
    # The cube lies on the palm: half of its side above the palm's face, and rest offsets between.
    torch.testing.assert_close(cubes[:, 2], torch.full((4,), 0.5 + 0.012 + 0.025), rtol=0.0, atol=2.1e-3)
    torch.testing.assert_close(task.root_states[task.goal_indices, :3], goals, rtol=0.0, atol=1e-5)
    assert (task.sensors.abs() < 1e-6).all(), "fingers touch nothing while they are open"
    closing = torch.tensor([-0.5, -1.0] * 3 + [0.5, 1.0])
    for _ in range(60):
        obs, reward, _, _ = task.step(closing.repeat(4, 1))
    assert torch.isfinite(obs["obs"]).all()
    assert torch.isfinite(reward).all()
    assert (task.dof_forces.abs().amax(dim=1) > 0.1).all(), "the drives press on the cube"
    # One hand is reset with its cube and goal, the others go on as they are.
    before = task.root_states.clone()
    task.reset_idx(torch.tensor([2]))
    task.gym.refresh_actor_root_state_tensor(task.sim)
    changed = (task.root_states != before).any(dim=1).nonzero().flatten().tolist()
    assert changed == sorted([int(task.object_indices[2]), int(task.goal_indices[2])])
    turned = task.root_states[task.goal_indices[2], 3:7]
    torch.testing.assert_close(turned, task.goal_rot[2], rtol=0.0, atol=1e-6)


def test_walkers_change_levels_alone(robots):
    """Who stays moves down, who gets far moves up, each to the middle of its new tile, and stands there."""
    from tests.gymapi.suites.curriculum import CurriculumConfig, CurriculumWalker

    args = gymutil.parse_arguments("walker", args=["--sim_device", "cpu", "--pipeline", "cpu"])
    task = CurriculumWalker(CurriculumConfig, robots, args)
    task.reset_idx(torch.arange(6))
    assert task.levels.tolist() == [0, 0, 0, 0, 1, 1]
    for _ in range(30):
        task.step(torch.zeros((6, 8)))
        assert not task.post_physics_step(100).numel()
    # One is carried off by half a tile: its level rises, and it starts in the middle of a tile of that level.
    task.root_states[3, 0] += 2.0
    others = [0, 1, 2, 4, 5]
    before = task.root_states[others].clone()
    task.reset_idx(torch.tensor([3]))
    assert task.levels.tolist() == [0, 0, 0, 1, 1, 1]
    task.gym.refresh_actor_root_state_tensor(task.sim)
    torch.testing.assert_close(task.root_states[others], before, rtol=0.0, atol=0.0)
    origin = torch.from_numpy(task.terrain.origins[1, 1]).float()
    torch.testing.assert_close(task.root_states[3, :2], origin[:2], rtol=0.0, atol=1e-6)
    for _ in range(75):
        task.step(torch.zeros((6, 8)))
    clearance = task.root_states[:, 2] - task.measured_heights().max(dim=1).values
    assert (clearance > 0.25).all()
    assert (torch.linalg.norm(task.root_states[:, 7:10], dim=1) < 0.05).all()


def test_teams_of_three_robots_follow_their_commands(robots):
    """Flyers hover, rotors gain torque * time / inertia, arms are where they are sent, walkers stand."""
    from tests.gymapi.suites.team import Team

    team = Team(robots, EXAMPLE_ASSETS)
    team.reset([0, 1, 2])
    targets = torch.linspace(0.1, 0.6, team.counts["arm"])
    targets[-2:] = 0.02
    steps, torque = 120, 1e-3
    for _ in range(steps):
        team.step(targets, spin=torque)
    assert team.roots.shape == (3, 3, 13)
    np.testing.assert_allclose(team.dofs[:, team.columns["arm"], 0], targets.expand(3, -1), atol=1e-3)
    inertia = 0.5 * 0.02 * 0.05**2
    rates = torque / inertia * steps / 60.0 * torch.tensor([1.0, -1.0, 1.0, -1.0])
    np.testing.assert_allclose(team.dofs[:, team.columns["flyer"], 1], rates.expand(3, -1), rtol=1e-5)
    np.testing.assert_allclose(team.roots[:, 2, :3], [[0.0, -0.8, 1.0]] * 3, atol=1e-4)
    assert ((team.roots[:, 1, 2] > 0.3) & (team.roots[:, 1, 2] < 0.42)).all()
    # The same env gives the same bits whichever place it has.
    assert torch.equal(team.roots[0], team.roots[2])
    before = team.roots.clone(), team.dofs.clone()
    team.reset([1], robots=(2,))
    team.gym.refresh_actor_root_state_tensor(team.sim)
    team.gym.refresh_dof_state_tensor(team.sim)
    moved = (team.dofs != before[1]).any(dim=-1)
    assert moved.sum() == moved[1, team.columns["flyer"]].sum() == 4
    assert torch.equal(team.roots[0], before[0][0])


def run_script(monkeypatch, name, *words):
    """Run a script as a command does and return its variables."""
    monkeypatch.setattr("sys.argv", [name, *words])
    return runpy.run_path(str(SUITES / f"{name}.py"), run_name="__main__")


def test_keys_throw_balls_and_put_boxes_back(monkeypatch):
    """A ball of 0.42 kg at 12 m/s knocks down boxes of 0.27 kg; the state that was kept brings them back."""
    monkeypatch.setenv("PLURIVERSE_GYM_FRAMES", "70")
    pressed = {20: "space_shoot", 60: "reset"}
    frames = iter(range(71))

    def events(gym, viewer):
        name = pressed.get(next(frames))
        return [SimpleNamespace(action=name, value=1.0)] if name else []

    monkeypatch.setattr(gymapi.Gym, "query_viewer_action_events", events)
    heights = run_script(monkeypatch, "keyboard_loop", "--num_envs", "2")["heights"]
    assert len(heights) == 70
    standing = np.array([0.15, 0.45, 0.75, 0.1] * 2)
    np.testing.assert_allclose(heights[19], standing, atol=0.01)
    assert (np.abs(heights[59] - standing).reshape(2, 4)[:, :3].max(axis=1) > 0.1).all()
    np.testing.assert_allclose(heights[69], standing, atol=0.01)


@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
def test_options_and_modes_of_an_arm_do_what_they_say(monkeypatch, capsys):
    """Without gravity drives hold exactly; speeds are reached; an attractor holds a hand against gravity."""
    script = run_script(monkeypatch, "asset_options", "--asset_root", EXAMPLE_ASSETS, "--gains", "500", "50")
    middles = script["mids"]
    fixed = [result for result in script["results"] if result[0].fix_base_link]
    assert len(script["results"]) == 16
    for options, mode, dofs, bodies, _ in script["results"]:
        assert all(np.isfinite(dofs[name]).all() for name in ("pos", "vel"))
        assert bodies == 10
        if mode == gymapi.DOF_MODE_POS and options.disable_gravity:
            np.testing.assert_allclose(dofs["pos"], middles, atol=1e-3)
        if mode == gymapi.DOF_MODE_VEL:
            np.testing.assert_allclose(dofs["vel"][0], 0.5, rtol=1e-2)
    for _, mode, dofs, _, states in fixed:
        np.testing.assert_allclose(states["pose"]["p"][0].tolist(), (0.0, 0.0, 0.05), atol=1e-7)
        if mode == gymapi.DOF_MODE_EFFORT:  # pushed up in all joints, against damping only where none hangs
            assert dofs["pos"][7] > 0.02
    assert script["reached"].length() < 2e-3


def test_scripts_of_strangers_say_what_their_command_line_gets_wrong(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run_script(monkeypatch, "keyboard_loop", "--shape", "cone")
    assert "'cone'" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="no assets in /nowhere"):
        run_script(monkeypatch, "asset_options", "--asset_root", "/nowhere")
