"""The tasks that come with the package run, and say where robots are looked for."""

import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pluriverse import envs  # noqa: E402
from pluriverse.config import ASSET_ROOTS_VARIABLE  # noqa: E402
from pluriverse.envs.registry import TASKS, find_task, takes_argument  # noqa: E402
from pluriverse.model_builder import ModelBuilder  # noqa: E402

OWN = ["cartpole", "ant", "puli-rough", "reach", "lift", "turn"]
OTHERS = ["go1-flat", "anymal-flat", "g1-walk"]


def run(task: envs.Task, env_count: int, steps: int, identities=None) -> list[torch.Tensor]:
    """Return observations and rewards of a run under random actions."""
    with envs.Environment(task, env_count, seed=1, threads=2, identities=identities) as env:
        seen = [env.reset()]
        chosen = np.arange(env_count) if identities is None else identities
        for step in range(steps):
            rows = [np.random.default_rng([int(k), step]).normal(size=task.action_count) for k in chosen]
            result = env.step(np.array(rows))
            seen += [result.observations, result.rewards.unsqueeze(1)]
        assert all(len(value) == env_count for value in task.metrics(env).values())
        return seen


@pytest.mark.parametrize("name", OWN)
def test_tasks_of_the_package_run_and_a_world_is_the_same_alone(name):
    """Finite observations and rewards; environment 4 has the same bits alone and among seven."""
    batch = run(envs.make_task(name), 7, 12)
    assert all(torch.isfinite(part).all() for part in batch)
    alone = run(envs.make_task(name), 1, 12, identities=[4])
    for whole, own in zip(batch, alone, strict=True):
        assert torch.equal(whole[4], own[0])


@pytest.mark.parametrize("name", OTHERS)
def test_tasks_of_other_robots_stand_in_their_home_pose(name, robot_assets):
    """Without actions nobody has fallen after 0.6 s."""
    with envs.Environment(envs.make_task(name, asset_roots=[robot_assets]), 4, threads=2) as env:
        env.reset()
        for _ in range(30):
            result = env.step(torch.zeros(env.actions.shape))
            assert not result.terminated.any()


def test_every_task_has_a_class_and_a_summary():
    """Names are unique, and wrong ones get a suggestion."""
    assert envs.task_names() == list(TASKS)
    assert all(entry.summary for entry in TASKS.values())
    with pytest.raises(KeyError, match="did you mean go1-flat"):
        envs.make_task("go1_flat")
    for wrong in (1.0, (1.0, 0.0), (0.0, float("nan")), (0.0, 1.0, 2.0)):
        with pytest.raises(ValueError, match=r"forward is .*, but must be two numbers"):
            envs.make_task("puli-flat", forward=wrong)
    assert envs.make_task("anymal-flat").weights["torques"] > envs.make_task("go1-flat").weights["torques"]
    with pytest.raises(KeyError, match="there is no term speed of the reward; there are tracking"):
        envs.make_task("puli-flat", weights={"speed": 1.0})
    with pytest.raises(KeyError, match="no class 'Walk'"):
        envs.make_task("pluriverse.envs.tasks.ant:Walk")
    with pytest.raises(TypeError, match="must derive from"):
        envs.make_task("pluriverse.envs.registry:TaskEntry")


def test_a_task_of_your_own_is_named_by_its_file(tmp_path):
    """`file.py:Class` needs no installation."""
    file = tmp_path / "mine.py"
    file.write_text("from pluriverse.envs import Task\nclass Mine(Task):\n    action_count = 3\n")
    assert envs.make_task(f"{file}:Mine").action_count == 3
    walk = tmp_path / "walk.py"
    walk.write_text(
        "from pluriverse.envs.tasks.velocity import VelocityTask\n"
        "class Walk(VelocityTask):\n    def __init__(self, **options):\n"
        "        super().__init__('puli', **options)\n"
    )
    for name, takes in (
        ("go1-flat", True),
        (f"{walk}:Walk", True),
        (f"{file}:Mine", False),
        ("reach", False),
    ):
        assert takes_argument(find_task(name), "command") == takes
    with pytest.raises(ImportError, match="there is no file"):
        envs.make_task(f"{tmp_path / 'none.py'}:Mine")


def test_a_task_imports_what_stands_beside_its_file(tmp_path, monkeypatch):
    """Also later, in its functions, as a script does; and what is missing is named with the folder."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = tmp_path / "sub"
    folder.mkdir()
    (folder / "own_terms.py").write_text("COUNT = 3\n")
    (folder / "own_sizes.py").write_text("SIZE = 2.0\n")
    (folder / "own_walk.py").write_text(
        "from own_terms import COUNT\nfrom pluriverse.envs import Task\n"
        "class Walk(Task):\n    action_count = COUNT\n"
        "    def size(self):\n        from own_sizes import SIZE\n        return SIZE\n"
    )
    task = envs.make_task(f"{folder / 'own_walk.py'}:Walk")
    assert (task.action_count, task.size()) == (3, 2.0)
    (folder / "own_wrong.py").write_text("import own_nothing\n")
    with pytest.raises(
        ImportError, match=rf"own_wrong\.py' needs the module 'own_nothing', .* nor in '{folder}'"
    ):
        envs.make_task(f"{folder / 'own_wrong.py'}:Walk")
    (folder / "own_wrong.py").write_text("from own_terms import SPEED\n")
    with pytest.raises(ImportError, match=r"own_wrong\.py' cannot be imported: cannot import name 'SPEED'"):
        envs.make_task(f"{folder / 'own_wrong.py'}:Walk")
    (folder / "own_wrong.py").write_text(
        "from pluriverse.envs.optional import import_optional\n"
        "import_optional('own_library', extra='learn', purpose='Dreams')\n"
    )
    with pytest.raises(ImportError, match=r"^Dreams need own_library: pip install 'pluriverse\[learn\]'"):
        envs.make_task(f"{folder / 'own_wrong.py'}:Walk")


def test_a_robot_whose_file_is_missing_is_named_with_the_places(tmp_path, monkeypatch):
    """The message says where it was looked for and what to do; folders below a root are searched."""
    monkeypatch.setenv("SAP_WARP_ASSET_OFFLINE", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(ASSET_ROOTS_VARIABLE, str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"robot 'go1'.*--asset-root FOLDER.*PLURIVERSE_ASSETS"):
        envs.find_robot("go1")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        envs.find_robot("go1", [tmp_path / "none"])
    with pytest.raises(KeyError, match="there is no robot 'go2'"):
        envs.find_robot("go2")
    place = tmp_path / "a" / "unitree_go1"
    place.mkdir(parents=True)
    (place / "go1.xml").write_text("<mujoco/>")
    assert envs.find_robot("go1") == place / "go1.xml"


def test_a_robot_of_your_own_is_added_with_gains_and_home(tmp_path):
    """Gains, targets and the pose are those given; a home of joints that are not there is an error."""
    file = tmp_path / "leg.urdf"
    file.write_text(
        '<robot name="leg"><link name="base"/><joint name="knee" type="revolute"><parent link="base"/>'
        '<child link="shank"/><axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="9" velocity="5"/>'
        "</joint>"
        '<link name="shank"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" '
        'izz="1"/></inertial></link></robot>'
    )
    robot = envs.Robot(
        "leg", (str(file),), home={"knee": 0.5}, drive_gains={"knee": (30.0, 1.0)}, armature=0.02
    )
    builder = ModelBuilder()
    envs.add_robot(builder, robot)
    model = builder.finalize("cpu")
    assert model.joint_q.numpy().tolist() == [0.5]
    assert model.joint_target_ke.numpy().tolist() == [30.0]
    np.testing.assert_allclose(model.joint_armature.numpy(), 0.02)
    walking = ModelBuilder()
    envs.add_robot(walking, envs.Robot("leg", (str(file),), height=0.4))  # a height means that it is free
    assert walking.joint_q[2] == 0.4
    with pytest.raises(ValueError, match=r"height is 0\.4 m, but its base is fixed.*floating=True"):
        envs.add_robot(ModelBuilder(), envs.Robot("leg", (str(file),), height=0.4, floating=False))
    wrong = envs.Robot("leg", (str(file),), home={"ankle": 0.5})
    with pytest.raises(ValueError, match=r"home pose names ankle.*there are .*knee"):
        envs.add_robot(ModelBuilder(), wrong)


def test_objects_of_all_kinds_can_be_lifted():
    """A hand that is led over the object, closed and raised lifts all four shapes in all three sizes."""
    from pluriverse.envs.tasks.arm import rotated

    task = envs.make_task("lift")
    with envs.Environment(task, 12, threads=2, reset_done=False) as env:
        env.reset()
        actions = torch.zeros((12, 5))
        for step in range(110):
            aim = task.object.base_positions - task.goal[:, :3]
            ahead = rotated(task.object.base_quaternions, torch.tensor([1.0, 0.0, 0.0]))
            actions.zero_()
            if step < 45:  # over the object, and down once it is below
                actions[:, :2] = 50.0 * aim[:, :2]
                actions[:, 2] = torch.where(aim[:, :2].norm(dim=1) < 0.006, 50.0 * aim[:, 2], 0.0)
                actions[:, 3] = 15.0 * (torch.atan2(ahead[:, 1], ahead[:, 0]) - task.goal[:, 3])
                actions[:, 4] = 1.0
            else:
                actions[:, 4] = -1.0
                actions[:, 2] = 0.5 if step > 70 else 0.0
            env.step(actions)
        assert task.held_up().all(), task.height()
        assert task.metrics(env)["held up"].mean() == 1.0


def test_a_hand_turns_cubes_by_its_clock_alone():
    """Without a policy all three cubes turn, and none is lost."""
    task = envs.make_task("turn")
    with envs.Environment(task, 6, threads=2, reset_done=False) as env:
        env.reset()
        turned = torch.zeros(6)
        for _ in range(75):
            result = env.step(torch.zeros(env.actions.shape))
            assert not result.terminated.any()
            turned += env.step_seconds * task.metrics(env)["turning rate"]
    assert turned.mean() > 1.5


def test_robots_are_pushed_as_often_and_as_far_as_asked():
    """Pushes change the horizontal velocity of the base by up to `push`, one in so many steps; else none."""
    task = envs.make_task("puli-flat", push=0.5)
    task.push_seconds = 0.1
    with envs.Environment(task, 64, threads=2) as env:
        env.reset()
        before = env.simulation.state.joint_qd.numpy().reshape(64, -1).copy()
        task.act(env, torch.zeros(env.actions.shape))
        change = env.simulation.state.joint_qd.numpy().reshape(64, -1) - before
    assert not change[:, 2:].any()
    pushed = change.any(axis=1)
    assert np.abs(change).max() <= 0.5
    assert 4 < int(pushed.sum()) < 26  # 64 draws of 1 in 5: 12.8 in the mean, 3.2 as deviation
