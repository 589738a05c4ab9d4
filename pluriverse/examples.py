"""Command line, viewer and loop of scripts with a class `Example`, as Newton's examples are written.

    viewer, args = pluriverse.examples.init()
    pluriverse.examples.run(Example(viewer, args), args)

`Example` has the methods `step` and `render`, which calls `begin_frame`, `log_state` and `end_frame` of the
viewer. With `--test`, its `test_post_step` is called after each step and `test_final` at the end.
"""

import argparse
import ast
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.collision import CollisionPipeline
from pluriverse.config import ASSET_ROOTS_VARIABLE, asset_folders
from pluriverse.files import find_file
from pluriverse.launch import launch_kernel
from pluriverse.model import Model, State
from pluriverse.newton_names import missing
from pluriverse.viewer import ViewerFile, ViewerGL, ViewerNull, ViewerUSD, ViewerViser

__all__ = [
    "add_broad_phase_arg",
    "add_max_worlds_arg",
    "add_mujoco_contacts_arg",
    "add_world_count_arg",
    "create_collision_pipeline",
    "create_parser",
    "default_args",
    "get_asset",
    "init",
    "run",
    "test_body_state",
]

VIEWERS = ("viser", "gl", "usd", "file", "null")
"""Values of `--viewer`."""
FRAME_COUNT = 100
"""Frames where `--num-frames` is not given."""
# Objects of an example whose arrays must stay finite in a test; NaN in a model is a value not given.
_TESTED = ("state_0", "state_1", "control", "contacts")


def __getattr__(name: str) -> Any:
    raise missing("examples", name, kind="module")


def create_parser() -> argparse.ArgumentParser:
    """Return a parser of the arguments that all scripts have, to add others to."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--device", default=None, help="device, such as cpu or cuda:0; None for that of Warp")
    parser.add_argument(
        "--viewer",
        choices=VIEWERS,
        default="viser",
        help="viser or gl: in the browser; usd, file: write --output-path; null: show nothing",
    )
    parser.add_argument("--output-path", default=None, help="file to write, such as run.usd or run.pvr")
    parser.add_argument(
        "--num-frames",
        type=int,
        default=None,
        help=f"number of frames; without it {FRAME_COUNT}, and no end in the browser but with --test",
    )
    parser.add_argument("--render-fps", type=_positive, default=None, help="upper bound of frames per second")
    on_off = argparse.BooleanOptionalAction
    parser.add_argument("--headless", action=on_off, default=False, help="with gl: pictures without a window")
    parser.add_argument("--test", action=on_off, default=False, help="run the tests of the example")
    parser.add_argument("--quiet", action=on_off, default=False, help="print no messages of the compiler")
    parser.add_argument("--paused", action=on_off, default=False, help="begin with a pause")
    parser.add_argument(
        "--benchmark",
        type=float,
        nargs="?",
        const=0.0,
        default=None,
        metavar="SECONDS",
        help="show nothing, and print frames per second; end after so many seconds if given",
    )
    parser.add_argument(
        "--warp-config", action="append", default=[], metavar="NAME=VALUE", help="set wp.config.NAME"
    )
    parser.add_argument("--realtime", action="store_true", help="without effect: priorities stay as they are")
    return parser


def add_world_count_arg(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add `--world-count`."""
    parser.add_argument("--world-count", type=int, default=1, help="number of worlds")
    return parser


def add_max_worlds_arg(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add `--max-worlds`: how many worlds are shown."""
    parser.add_argument("--max-worlds", type=int, default=None, help="number of worlds to show")
    return parser


def add_broad_phase_arg(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add `--broad-phase`, which changes nothing: near pairs are found in one way."""
    parser.add_argument("--broad-phase", default="explicit", choices=["nxn", "sap", "explicit"])
    return parser


def add_mujoco_contacts_arg(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add `--use-mujoco-contacts`, for scripts that pass it on to `SolverMuJoCo`."""
    parser.add_argument("--use-mujoco-contacts", action=argparse.BooleanOptionalAction, default=False)
    return parser


def default_args(parser: argparse.ArgumentParser | None = None) -> argparse.Namespace:
    """Return the arguments as without a command line, for notebooks and tests."""
    args = (parser or create_parser()).parse_args([])
    _fill_frame_count(args)
    return args


def init(parser: argparse.ArgumentParser | None = None) -> tuple[Any, argparse.Namespace]:
    """Parse the command line, select the device, and make the viewer.

    Args:
        parser: Parser that began as `create_parser()`; if None, that one, and unknown arguments are left
            alone.

    Returns:
        The viewer and the arguments.

    Raises:
        ImportError: If the viewer needs a library that is not installed.
        SystemExit: If the command line is wrong.
    """
    if parser is None:
        parser = create_parser()
        args = parser.parse_known_args()[0]
    else:
        args = parser.parse_args()
    for setting in args.warp_config:
        _set_warp(parser, setting)
    if args.quiet:
        wp.config.log_level = max(wp.config.log_level, wp.LOG_WARNING)
    if args.device:
        try:
            wp.set_device(args.device)
        except (RuntimeError, ValueError) as error:
            names = ", ".join(str(device) for device in wp.get_devices())
            parser.error(f"--device {args.device}: {error}. Devices of this machine: {names}")
    is_endless = args.num_frames is None and not args.test
    _fill_frame_count(args)
    if args.num_frames < 0:
        parser.error(f"--num-frames is {args.num_frames}, but must not be negative")
    return _make_viewer(args, is_endless), args


def run(example: Any, args: argparse.Namespace | None) -> None:
    """Step and render an example until its viewer ends, then close the viewer.

    With `args.test`, call its `test_post_step` after each step and its `test_final` at the end, and check
    that its states, control and contacts are finite.

    Args:
        example: An object with `viewer`, `step()` and `render()`.
        args: What `init` returned.

    Raises:
        AttributeError: If the example lacks one of these.
        NotImplementedError: If `args.test` is set and the example has no test.
        ValueError: If an array is not finite in a test.
    """
    for name in ("viewer", "step", "render"):
        if not hasattr(example, name):
            raise AttributeError(
                f"run: a {type(example).__name__} has no '{name}'. An example needs the attribute 'viewer' "
                "and the methods 'step' and 'render'."
            )
    viewer = example.viewer
    is_test = bool(getattr(args, "test", False))
    if is_test and not (hasattr(example, "test_post_step") or hasattr(example, "test_final")):
        raise NotImplementedError(
            f"run: {type(example).__name__} has neither 'test_post_step' nor 'test_final', which --test "
            "calls. Give it one of them, or run it without --test."
        )
    fps = getattr(args, "render_fps", None)
    if hasattr(example, "gui") and not is_test and hasattr(viewer, "register_ui_callback"):
        viewer.register_ui_callback(example.gui, position="side")
    try:
        while viewer.is_running():
            begun = time.perf_counter()
            if viewer.should_step():
                example.step()
                if is_test and hasattr(example, "test_post_step"):
                    example.test_post_step()
            example.render()
            if fps is not None:
                time.sleep(max(0.0, begun + 1.0 / fps - time.perf_counter()))
        if is_test and hasattr(example, "test_final"):
            example.test_final()
    except KeyboardInterrupt:
        if is_test:
            raise
    finally:
        viewer.close()
    result = viewer.benchmark_result()
    if result is not None:
        print(f"{result['fps']:.4g} frames/s ({result['frames']} frames in {result['elapsed']:.2f} s)")
    if is_test:
        for name in _TESTED:
            _check_finite(name, getattr(example, name, None))


def get_asset(filename: str) -> str:
    """Return the path of a file that a script names, below `config.asset_roots` (`PLURIVERSE_ASSETS`).

    Raises:
        FileNotFoundError: If it is in none of them; this package ships no robots.
    """
    folders = asset_folders()
    for folder in folders:
        found = find_file(folder, filename)
        if found is not None:
            return str(found)
    tried = ", ".join(f"'{folder}'" for folder in folders) or "no folder, since none was named"
    raise FileNotFoundError(
        f"get_asset: '{filename}' was not found in {tried}. Set the environment variable "
        f"{ASSET_ROOTS_VARIABLE} to the folder that holds it (Newton's own are in newton/examples/assets "
        "of its repository), or pass the path of a file of your own."
    )


def test_body_state(
    model: Model,
    state: State,
    test_name: str,
    test_fn: Any,
    indices: Sequence[int] | None = None,  # noqa: PT028
    show_body_q: bool = False,  # noqa: PT028
    show_body_qd: bool = False,  # noqa: PT028
) -> None:
    """Check a condition on the pose and the velocity of bodies.

    Args:
        model: The model.
        state: The state.
        test_name: What is tested, for the message.
        test_fn: Function of `body_q` [m, xyzw] and `body_qd` [m/s, rad/s] that says whether they are right: a
            `wp.func`, or a function or lambda that Warp can compile.
        indices: The bodies; all if None.
        show_body_q: Whether the message gives the poses.
        show_body_qd: Whether the message gives the velocities.

    Raises:
        ValueError: If it is not fulfilled; the message names the bodies.
    """
    condition: Any = test_fn
    if not isinstance(test_fn, wp.Function):
        condition = wp.utils.create_warp_function(test_fn)[0]
    bodies = np.arange(model.body_count) if indices is None else np.asarray(list(indices), dtype=np.int64)
    if bodies.size and not (bodies.min() >= 0 and bodies.max() < model.body_count):
        raise ValueError(
            f"test_body_state: '{test_name}' names body {bodies.max()}, but the model has {model.body_count}."
        )
    if state.body_q is None or state.body_qd is None:
        raise ValueError("test_body_state: the state has no poses of bodies. Make it with model.state().")

    @wp.kernel(module="unique", enable_backward=False)
    def evaluate(  # type: ignore[no-untyped-def]
        body_q: wp.array[wp.transform],  # [body] m, xyzw
        body_qd: wp.array[wp.spatial_vector],  # type: ignore[valid-type]  # [body] m/s, rad/s
        chosen: wp.array[int],  # [row] bodies
        is_fulfilled: wp.array[int],  # [row]
    ):
        thread, _ = wp.tid()  # type: ignore[misc]
        body = chosen[thread]
        if condition(body_q[body], body_qd[body]):
            is_fulfilled[thread] = 1  # type: ignore[index]

    device = state.body_q.device
    fulfilled = wp.zeros(bodies.size, dtype=int, device=device)
    launch_kernel(
        evaluate,
        dim=bodies.size,
        inputs=[state.body_q, state.body_qd, wp.array(bodies, dtype=int, device=device), fulfilled],
        device=device,
    )
    poses, twists = state.body_q.numpy().reshape(-1, 7), state.body_qd.numpy().reshape(-1, 6)
    failed = []
    for body in bodies[fulfilled.numpy() == 0].tolist():
        text = model.body_label[body]
        if show_body_q:
            text += f" at {poses[body].tolist()}"
        if show_body_qd:
            text += f" moving at {twists[body].tolist()}"
        failed.append(text)
    if failed:
        raise ValueError(f"test_body_state: '{test_name}' is not true of {', '.join(failed)}.")


# It is no test of this package, whatever pytest makes of its name.
test_body_state.__test__ = False  # type: ignore[attr-defined]


def create_collision_pipeline(
    model: Model, args: argparse.Namespace | None = None, broad_phase: str | None = None, **options: Any
) -> CollisionPipeline:
    """Return a collision pipeline.

    Args:
        model: The model.
        args: Makes no difference.
        broad_phase: Makes no difference: near pairs are found in one way.
        **options: Those of `CollisionPipeline`.
    """
    return CollisionPipeline(model, **options)


def _fill_frame_count(args: argparse.Namespace) -> None:
    if args.num_frames is None:
        args.num_frames = FRAME_COUNT


def _make_viewer(args: argparse.Namespace, is_endless: bool) -> Any:
    """Return the viewer that was asked for; that of the browser may have no end."""
    if args.benchmark is not None:
        return ViewerNull(args.num_frames, benchmark=True, benchmark_timeout=args.benchmark or None)
    if args.viewer == "null":
        return ViewerNull(args.num_frames)
    if args.viewer in ("usd", "file"):
        make: Callable[..., Any] = ViewerUSD if args.viewer == "usd" else ViewerFile
        path = args.output_path or f"output.{'usd' if args.viewer == 'usd' else 'pvr'}"
        return make(path, num_frames=args.num_frames)
    if args.viewer == "gl" and args.headless:
        return ViewerGL(headless=True, num_frames=args.num_frames)
    return ViewerViser(num_frames=None if is_endless else args.num_frames, paused=args.paused)


def _set_warp(parser: argparse.ArgumentParser, setting: str) -> None:
    """Set an attribute of `wp.config` from `NAME=VALUE`."""
    name, equals, text = setting.partition("=")
    if not equals or not hasattr(wp.config, name):
        parser.error(f"--warp-config {setting}: write NAME=VALUE with the name of a setting of wp.config")
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = text
    setattr(wp.config, name, value)


def _positive(text: str) -> float:
    value = float(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def _check_finite(owner: str, holder: Any) -> None:
    """Raise if an array of floating-point numbers of an object holds NaN."""
    for name in dir(holder) if holder is not None else ():
        if name.startswith("_"):
            continue
        try:
            array = getattr(holder, name)
        except (AttributeError, RuntimeError, ValueError):
            continue  # an attribute that was not requested
        if isinstance(array, wp.array) and array.size:
            values = array.numpy()
            if values.dtype.kind == "f" and np.isnan(values).any():
                raise ValueError(f"run: {owner}.{name} holds NaN after the last step.")
