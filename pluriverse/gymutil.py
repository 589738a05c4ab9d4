"""Helpers for scripts of the actor API: command lines, configurations, random properties, lines to draw."""

import argparse
import math
import warnings
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np
import warp as wp

from pluriverse.gymapi.arguments import truth
from pluriverse.gymapi.enums import SimType
from pluriverse.gymapi.errors import GymWarning
from pluriverse.gymapi.random_properties import (
    apply_random_samples,
    check_buckets,
    generate_random_samples,
    get_bucketed_val,
    get_default_setter_args,
    get_property_getter_map,
    get_property_setter_map,
)
from pluriverse.gymapi.sim_config import parse_flex_config, parse_physx_config, parse_sim_config
from pluriverse.gymapi.values import Transform, Vec3

__all__ = [
    "AxesGeometry",
    "LineGeometry",
    "WireframeBBoxGeometry",
    "WireframeBoxGeometry",
    "WireframeSphereGeometry",
    "apply_random_samples",
    "check_buckets",
    "draw_line",
    "draw_lines",
    "generate_random_samples",
    "get_bucketed_val",
    "get_default_setter_args",
    "get_property_getter_map",
    "get_property_setter_map",
    "parse_arguments",
    "parse_bool",
    "parse_device_str",
    "parse_flex_config",
    "parse_physx_config",
    "parse_sim_config",
]


def parse_bool(value: Any, default: bool | None = None) -> bool:
    """Return a truth value written in one of the usual ways; `default` for an empty text or none.

    Raises:
        ValueError: If it is written in no such way.
    """
    if default is not None and str(value).strip().lower() in ("", "none"):
        return default
    try:
        return truth(value)
    except ValueError as error:
        raise ValueError(f"parse_bool: {error}") from None


def _indent_xml(elem: ElementTree.Element, level: int = 0) -> None:
    """Lay out an XML element in lines, two blanks a level. Scripts that write asset files call it."""
    ElementTree.indent(elem, space="  ", level=level)
    elem.tail = "\n" + "  " * level


def parse_device_str(text: str) -> tuple[str, int]:
    """Return kind ("cpu" or "cuda") and number of a device such as "cuda:1".

    Raises:
        ValueError: If it is no device.
    """
    kind, _, number = str(text).lower().partition(":")
    if kind not in ("cpu", "cuda", "gpu") or (number and not number.isdigit()):
        raise ValueError(f"parse_device_str: {text!r} is no device; write cpu, cuda or cuda:0.")
    return ("cuda" if kind == "gpu" else kind), int(number or 0)


def parse_arguments(
    description: str = "Actor API",
    headless: bool = False,
    no_graphics: bool = False,
    custom_parameters: Sequence[dict[str, Any]] = (),
    args: Sequence[str] | None = None,
) -> argparse.Namespace:
    """Return the options of a script.

    The result has sim_device, sim_device_type, compute_device_id, pipeline, use_gpu, use_gpu_pipeline,
    physics_engine, num_threads, graphics_device_id, and the custom parameters. Without a GPU the default
    device is the CPU.

    Args:
        description: What the script does.
        headless: Whether there is an option `--headless`.
        no_graphics: Whether there is an option `--nographics`.
        custom_parameters: Further options: dictionaries with name, type or action, and what else
            `argparse` takes (default, help, const, choices, nargs). With a type and a const the option may
            stand without a value. They take the place of options of the same name.
        args: Words of the command line; those of the process if None.

    Raises:
        ValueError: If a custom parameter has no name, or there is no such device.
    """
    has_gpu = wp.get_cuda_device_count() > 0
    parser = argparse.ArgumentParser(description=description, conflict_handler="resolve")
    if headless:
        parser.add_argument("--headless", action="store_true", help="run without a viewer")
    if no_graphics:
        parser.add_argument("--nographics", action="store_true", help="run without graphics")
    device = "cuda:0" if has_gpu else "cpu"
    parser.add_argument(
        "--sim_device", type=str, default=device, help="device of the physics, such as cuda:0"
    )
    parser.add_argument("--pipeline", type=str, default="gpu", help="where tensors are: cpu or gpu")
    parser.add_argument("--graphics_device_id", type=int, default=0, help="ignored")
    engine = parser.add_mutually_exclusive_group()
    engine.add_argument("--physx", action="store_true", help="rigid bodies (default)")
    engine.add_argument("--flex", action="store_true", help="accepted; the physics is the same")
    parser.add_argument("--num_threads", type=int, default=0, help="CPU threads; 0 for all cores")
    parser.add_argument("--subscenes", type=int, default=0, help="ignored")
    parser.add_argument("--slices", type=int, default=None, help="ignored")
    for parameter in custom_parameters:
        options = dict(parameter)
        name = options.pop("name", None)
        if name is None:
            raise ValueError(f"parse_arguments: the custom parameter {parameter!r} has no 'name'.")
        if "type" not in options and "action" not in options:
            raise ValueError(f"parse_arguments: the custom parameter {name!r} needs a 'type' or an 'action'.")
        if "action" in options:
            if options["action"] in ("store_true", "store_false"):  # which take neither
                options.pop("type", None)
                options.pop("const", None)
        elif "const" in options:
            options.setdefault("nargs", "?")
        if options.get("type") is bool:
            options["type"] = parse_bool
        parser.add_argument(name, **options)
    result = parser.parse_args(args)

    result.sim_device_type, result.compute_device_id = parse_device_str(result.sim_device)
    pipeline = str(result.pipeline).lower()
    if pipeline not in ("cpu", "gpu", "cuda"):
        parser.error(f"--pipeline is {result.pipeline!r}, but must be cpu or gpu")
    if result.sim_device_type == "cuda" and not has_gpu:
        warnings.warn(
            f"parse_arguments: --sim_device is {result.sim_device}, but there is no GPU; the CPU is used.",
            GymWarning,
            stacklevel=2,
        )
        result.sim_device, result.sim_device_type = "cpu", "cpu"
    result.use_gpu = result.sim_device_type == "cuda"
    result.use_gpu_pipeline = pipeline != "cpu" and result.use_gpu
    result.pipeline = "gpu" if result.use_gpu_pipeline else "cpu"
    result.physics_engine = SimType.SIM_FLEX if result.flex else SimType.SIM_PHYSX
    if not hasattr(result, "device"):  # a script may have an option of that name
        result.device = f"cuda:{result.compute_device_id}" if result.use_gpu else "cpu"
    if no_graphics and result.nographics:
        result.headless = True
    if result.slices is None:
        result.slices = result.subscenes
    return result


class LineGeometry:
    """Lines to draw: `vertices`, two for each line, and `colors`, as structured arrays."""

    def __init__(self, points: np.ndarray, colors: np.ndarray, pose: Transform | None):
        rows = np.ascontiguousarray(points, dtype=np.float32).reshape(-1, 3)
        if pose is not None:
            rows = pose.transform_points(rows).view(np.float32).reshape(-1, 3)
        self._points = rows
        self._colors = np.ascontiguousarray(colors, dtype=np.float32).reshape(-1, 3)

    def vertices(self) -> np.ndarray:
        """Return both ends of each line, structured, shape [line, 2]."""
        return self._points.view(Vec3.dtype).reshape(-1, 2)

    def colors(self) -> np.ndarray:
        """Return the colour of each line, structured, shape [line]."""
        return self._colors.view(Vec3.dtype).reshape(-1)

    def num_lines(self) -> int:
        """Return the number of lines."""
        return len(self._colors)

    def instance_verts(self, pose: Transform) -> np.ndarray:
        """Return both ends of each line at a pose, structured, shape [line, 2]."""
        return pose.transform_points(self._points).reshape(-1, 2)


class AxesGeometry(LineGeometry):
    """Three axes in red, green and blue."""

    def __init__(self, scale: float = 1.0, pose: Transform | None = None):
        points = np.zeros((3, 2, 3))
        points[:, 1] = scale * np.eye(3)
        super().__init__(points, np.eye(3), pose)


class WireframeBoxGeometry(LineGeometry):
    """The edges of a box of full sizes, centred."""

    def __init__(
        self,
        xdim: float = 1.0,
        ydim: float = 1.0,
        zdim: float = 1.0,
        pose: Transform | None = None,
        color: Any = None,
    ):
        half = 0.5 * np.array([xdim, ydim, zdim])
        super().__init__(_box_edges(-half, half), _color(color, 12), pose)


class WireframeBBoxGeometry(LineGeometry):
    """The edges of a box between two corners."""

    def __init__(self, bbox: Any, pose: Transform | None = None, color: Any = None):
        lower, upper = (np.array(list(corner), dtype=np.float64) for corner in bbox)
        super().__init__(_box_edges(lower, upper), _color(color, 12), pose)


class WireframeSphereGeometry(LineGeometry):
    """Circles of latitude and longitude of a sphere."""

    def __init__(
        self,
        radius: float = 1.0,
        num_lats: int = 8,
        num_lons: int = 8,
        pose: Transform | None = None,
        color: Any = None,
        color2: Any = None,
    ):
        lat = np.linspace(-0.5 * math.pi, 0.5 * math.pi, num_lats + 1)
        lon = np.linspace(0.0, 2.0 * math.pi, num_lons + 1)
        grid = radius * np.stack(
            [
                np.outer(np.cos(lat), np.cos(lon)),
                np.outer(np.cos(lat), np.sin(lon)),
                np.outer(np.sin(lat), np.ones_like(lon)),
            ],
            axis=-1,
        )
        along = np.stack([grid[:, :-1], grid[:, 1:]], axis=2)[1:-1].reshape(-1, 2, 3)
        across = np.stack([grid[:-1, :-1], grid[1:, :-1]], axis=2).reshape(-1, 2, 3)
        colors = np.concatenate([_color(color, len(along)), _color(color2 or color, len(across))])
        super().__init__(np.concatenate([along, across]), colors, pose)


def _box_edges(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return the ends of the twelve edges of a box."""
    edges = []
    for axis in range(3):
        others = [other for other in range(3) if other != axis]
        for a in (lower, upper):
            for b in (lower, upper):
                start, end = lower.copy(), upper.copy()
                for other, source in zip(others, (a, b), strict=True):
                    start[other] = end[other] = source[other]
                edges.append([start, end])
    return np.array(edges)


def _color(color: Any, count: int) -> np.ndarray:
    return np.tile((1.0, 0.0, 0.0) if color is None else tuple(color), (count, 1))


def draw_lines(geom: LineGeometry, gym: Any, viewer: Any, env: Any, pose: Transform) -> None:
    """Draw lines at a pose of an env."""
    gym.add_lines(viewer, env, geom.num_lines(), geom.instance_verts(pose), geom.colors())


def draw_line(p1: Vec3, p2: Vec3, color: Vec3, gym: Any, viewer: Any, env: Any) -> None:
    """Draw a line between two points of an env."""
    points = np.array([list(p1), list(p2)], dtype=np.float32)
    gym.add_lines(viewer, env, 1, points, np.array([list(color)], dtype=np.float32))
