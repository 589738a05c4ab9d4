"""Whatever a call is passed: it acts, or an error that begins with its name says what is wrong."""

import inspect
import warnings

import pytest

from pluriverse import gymapi
from tests.gymapi.scenes import add_env, at, make_sim, undamped

# What is not called: it ends the scene, or always raises.
LEFT_OUT = (
    "attach_sim",
    "create_sim",
    "destroy_env",
    "destroy_sim",
    "load_opensim",
    "load_sim",
    "prepare_sim",
    "simulate",
)
WRONG_OBJECTS = (None, 99, "x")
WRONG_HANDLES = (99, "x", -1)
WRONG_VALUES = ("x", object(), [1, 2, 3, 4, 5], float("nan"))
# What the API has and this package does not raises NotImplementedError, whatever it is given.
ERRORS = (gymapi.GymError, ValueError, TypeError, IndexError, NotImplementedError, FileNotFoundError)
# What calls take that is sound for most.
POSE, VECTOR = gymapi.Transform(), gymapi.Vec3()
SOUND = {
    "flags": 3,
    "pose": POSE,
    "local_pose": POSE,
    "transform": POSE,
    **dict.fromkeys(("lower", "upper", "velocity", "color", "position", "target", "force"), VECTOR),
    **dict.fromkeys(("num_per_row", "width", "height", "depth", "radius"), 1),
}


def wrong_calls(scene):
    """Yield calls with one wrong argument each: name of the call, of the argument, and all arguments."""
    for name in sorted(set(dir(gymapi.Gym)) - set(LEFT_OUT)):
        if name.startswith("_"):
            continue
        signature = inspect.signature(getattr(gymapi.Gym, name)).parameters.values()
        parameters = [
            part for part in signature if part.name != "self" and part.kind is not part.VAR_POSITIONAL
        ]
        given = {
            part.name: scene.get(part.name, SOUND.get(part.name, 0))
            for part in parameters
            if part.default is part.empty or part.name in scene
        }
        for part in parameters:
            wrong = WRONG_VALUES
            if part.name.endswith("handle"):
                wrong = WRONG_HANDLES
            elif part.name in scene:
                wrong = WRONG_OBJECTS
            for value in wrong:
                if part.name == "env" and value is None and name.startswith(("viewer", "get_viewer")):
                    continue  # they take cameras of no env
                yield name, part.name, given | {part.name: value}


@pytest.mark.parametrize("prepared", [False, True])
def test_wrong_arguments_are_named(gym, assets, prepared, tmp_path, monkeypatch):
    """No other error comes out than those documented, and each begins with the name of the call."""
    monkeypatch.chdir(tmp_path)  # names of files are among the arguments
    sim = make_sim()
    asset = gym.load_asset(sim, assets, "cartpole.urdf", undamped(fix_base_link=True))
    env = add_env(sim)
    actor = gym.create_actor(env, asset, at(), "cartpole", 0, 0)
    small = gymapi.CameraProperties(width=4, height=4)
    viewer = gym.create_viewer(sim, small, frames=10)
    for _ in range(3):
        gym.create_camera_sensor(env, small)
    if prepared:
        gym.simulate(sim)
    scene = {"sim": sim, "env": env, "asset": asset, "actor_handle": actor, "viewer": viewer, "envs": [env]}
    scene |= {"rigid_handle": 1, "joint_handle": 0, "dof_handle": 0, "camera_handle": 1}
    count, unnamed = 0, []
    for name, argument, arguments in wrong_calls(scene):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # files that are not there and the like
            try:
                getattr(gym, name)(**arguments)
            except ERRORS as error:
                count += 1
                if not str(error).startswith(f"{name}: "):
                    unnamed.append((name, argument, arguments[argument], error))
    assert unnamed == []
    assert count > 500, "most calls refuse what is wrong"
