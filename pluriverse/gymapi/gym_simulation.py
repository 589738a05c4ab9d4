"""Simulation calls: sims, parameters, grounds, steps and counts."""

import math
import time
import warnings
from typing import Any

import numpy as np
import warp as wp

import pluriverse
from pluriverse.gymapi.arguments import as_int
from pluriverse.gymapi.enums import SimType, UpAxis
from pluriverse.gymapi.errors import GymWarning, require
from pluriverse.gymapi.parameter_changes import follow_params
from pluriverse.gymapi.preparation import PreparingCalls, prepare
from pluriverse.gymapi.scene import Ground, Sim, pose_row
from pluriverse.gymapi.structures import (
    HeightFieldParams,
    PerformanceTimers,
    PlaneParams,
    SimParams,
    TriangleMeshParams,
)
from pluriverse.gymapi.values import Version


class SimulationCalls(PreparingCalls):
    """Sims: create, prepare, step, ask."""

    def create_sim(
        self,
        compute_device: int = 0,
        graphics_device: int = 0,
        type: SimType | int = SimType.SIM_FLEX,
        params: SimParams | None = None,
    ) -> Sim | None:
        """Return a new sim, or None with a warning if it cannot be.

        Args:
            compute_device: Number of the GPU, where `params.use_gpu_pipeline` is set.
            graphics_device: Ignored; pictures are rendered on the device of the sim.
            type: Backend; either names the same physics.
            params: Parameters; copied.
        """
        checked = SimParams() if params is None else params
        if not isinstance(checked, SimParams):
            raise TypeError(f"create_sim: params is {params!r}, but must be a gymapi.SimParams.")
        _check_params(checked, "create_sim")
        name = f"cuda:{int(compute_device)}" if checked.use_gpu_pipeline else "cpu"
        try:
            device = wp.get_device(name)
        except (ValueError, RuntimeError) as error:
            warnings.warn(
                f"create_sim: there is no device '{name}' ({error}), so the sim is None. Set "
                "sim_params.use_gpu_pipeline = False to simulate on the CPU.",
                GymWarning,
                stacklevel=2,
            )
            return None
        up = np.array([0.0, 1.0, 0.0]) if checked.up_axis == UpAxis.UP_AXIS_Y else np.array([0.0, 0.0, 1.0])
        gravity = np.array(list(checked.gravity))
        if gravity.any() and np.cross(up, gravity).any():
            warnings.warn(
                f"create_sim: gravity is {gravity.tolist()} m/s², but "
                f"{UpAxis(int(checked.up_axis)).name} points "
                "up. Set sim_params.gravity or sim_params.up_axis; neither follows the other.",
                GymWarning,
                stacklevel=2,
            )
        return Sim(checked, device)

    def destroy_sim(self, sim: Any) -> None:
        """Free what a sim holds. Further calls with it are errors."""
        found = self._sim(sim, "destroy_sim")
        for viewer in found.viewers:
            viewer.close()
        if found.runtime is not None:
            found.runtime.close()
        found.runtime = None
        found.is_destroyed = True

    def get_sim_params(self, sim: Any) -> SimParams:
        """Return a copy of the parameters."""
        return self._sim(sim, "get_sim_params").params.copy()

    def set_sim_params(self, sim: Any, params: SimParams) -> None:
        """Change parameters, from the next `simulate` on.

        Raises:
            GymError: If one cannot change any more.
        """
        found = self._sim(sim, "set_sim_params")
        if not isinstance(params, SimParams):
            raise TypeError(f"set_sim_params: params is {params!r}, but must be a gymapi.SimParams.")
        _check_params(params, "set_sim_params")
        if found.runtime is not None:
            old = found.params
            found.runtime.set_params(params)
            found.params = found.runtime.params
            follow_params(found, old)
        else:
            found.params = params.copy()

    def set_sim_device(self, sim: Any) -> None:
        """Make the device of a sim the current one of Warp."""
        wp.set_device(self._sim(sim, "set_sim_device").device)

    def prepare_sim(self, sim: Any) -> bool:
        """Make the model of everything that was created. `simulate` does it where a script does not."""
        found = self._sim(sim, "prepare_sim")
        prepare(found, "prepare_sim")
        return True

    def simulate(self, sim: Any) -> None:
        """Advance by `SimParams.dt`."""
        runtime = self._runtime(sim, "simulate")
        start = time.perf_counter()
        runtime.step()
        sim.frame_count += 1
        sim.time += sim.params.dt
        sim.step_time = time.perf_counter() - start

    def fetch_results(self, sim: Any, wait: bool = True) -> None:
        """Wait for the step, if `wait`. Getters give its results without this call too."""
        found = self._sim(sim, "fetch_results")
        if wait and not found.device.is_cpu:
            wp.synchronize_device(found.device)

    def get_frame_count(self, sim: Any) -> int:
        """Return how often `simulate` was called."""
        return self._sim(sim, "get_frame_count").frame_count

    def get_sim_time(self, sim: Any) -> float:
        """Return the simulated time [s]."""
        return self._sim(sim, "get_sim_time").time

    def get_elapsed_time(self, sim: Any) -> float:
        """Return the wall-clock time since the sim was created [s]."""
        return time.monotonic() - self._sim(sim, "get_elapsed_time").begin_time

    def get_version(self) -> Version:
        """Return the version of the package."""
        major, minor = pluriverse.__version__.split(".")[:2]
        return Version(int(major), int(minor))

    def create_performance_timers(self, sim: Any) -> int:
        """Return a handle for `get_performance_timers`."""
        self._sim(sim, "create_performance_timers")
        return 0

    def get_performance_timers(self, sim: Any, handle: int) -> PerformanceTimers:
        """Return the times of the last `simulate`."""
        found = self._sim(sim, "get_performance_timers")
        step_time = found.step_time
        return PerformanceTimers(physics_sim=step_time, total_time=step_time)

    def destroy_performance_timers(self, sim: Any, handle: int) -> None:
        """Accept a handle."""
        self._sim(sim, "destroy_performance_timers")

    def get_env_count(self, sim: Any) -> int:
        """Return the number of envs."""
        return len(self._sim(sim, "get_env_count").envs)

    def get_sim_actor_count(self, sim: Any) -> int:
        """Return the number of actors of all envs."""
        return self._sim(sim, "get_sim_actor_count").actor_count

    def get_sim_rigid_body_count(self, sim: Any) -> int:
        """Return the number of bodies of all envs."""
        return self._sim(sim, "get_sim_rigid_body_count").body_count

    def get_sim_joint_count(self, sim: Any) -> int:
        """Return the number of joints of all envs."""
        return self._sim(sim, "get_sim_joint_count").joint_count

    def get_sim_dof_count(self, sim: Any) -> int:
        """Return the number of degrees of freedom of all envs."""
        return self._sim(sim, "get_sim_dof_count").dof_count

    def get_sim_force_sensor_count(self, sim: Any) -> int:
        """Return the number of force sensors of all envs."""
        return self._sim(sim, "get_sim_force_sensor_count").sensor_count

    def add_ground(self, sim: Any, params: PlaneParams) -> None:
        """Add a plane that collides with everything."""
        found = self._open_sim(sim, "add_ground")
        if not isinstance(params, PlaneParams):
            raise TypeError(f"add_ground: params is {params!r}, but must be a gymapi.PlaneParams.")
        normal = np.array(list(params.normal), dtype=np.float64)
        length = float(np.linalg.norm(normal))
        require(length > 0.0, "add_ground", f"normal is {params.normal!r}, which has no direction. Give one.")
        normal /= length
        quat = np.array([-normal[1], normal[0], 0.0, 1.0 + normal[2]])
        size = float(np.linalg.norm(quat))
        quat = quat / size if size > 1.0e-8 else np.array([1.0, 0.0, 0.0, 0.0])
        pose = np.concatenate([-float(params.distance) * normal, quat])
        found.grounds.append(
            Ground(
                "plane",
                pose,
                *_friction(params, "add_ground"),
                segmentation_id=as_int(params.segmentation_id, "params.segmentation_id", "add_ground"),
            )
        )

    def add_triangle_mesh(self, sim: Any, vertices: Any, triangles: Any, params: TriangleMeshParams) -> None:
        """Add a terrain of triangles that collides with everything.

        Args:
            sim: The sim, not prepared yet.
            vertices: Positions [m], flat or of shape [vertex, 3].
            triangles: Three vertices per triangle, flat or of shape [triangle, 3].
            params: Counts, pose and friction.
        """
        found = self._open_sim(sim, "add_triangle_mesh")
        if not isinstance(params, TriangleMeshParams):
            raise TypeError(
                f"add_triangle_mesh: params is {params!r}, but must be a gymapi.TriangleMeshParams."
            )
        points = np.asarray(vertices, dtype=np.float32).reshape(-1)
        corners = np.asarray(triangles).astype(np.int64).reshape(-1)
        for what, size, count in (
            ("vertices", points.size, params.nb_vertices),
            ("triangles", corners.size, params.nb_triangles),
        ):
            require(
                size == 3 * int(count),
                "add_triangle_mesh",
                f"{what} has {size} numbers, but params.nb_{what} is {count}, which needs {3 * int(count)}.",
            )
        require(
            corners.size > 0 and corners.min() >= 0 and corners.max() < params.nb_vertices,
            "add_triangle_mesh",
            f"triangles name vertices outside 0 to {params.nb_vertices - 1}, or there are none.",
        )
        found.grounds.append(
            Ground(
                "mesh",
                pose_row(params.transform).astype(np.float64),
                *_friction(params, "add_triangle_mesh"),
                vertices=points.reshape(-1, 3).copy(),
                triangles=corners.reshape(-1, 3).astype(np.int32),
                segmentation_id=as_int(params.segmentation_id, "params.segmentation_id", "add_triangle_mesh"),
            )
        )

    def add_heightfield(self, sim: Any, samples: Any, params: HeightFieldParams) -> None:
        """Add a terrain of heights over a grid that collides with everything.

        Args:
            sim: The sim, not prepared yet.
            samples: Heights in units of `vertical_scale`, int16; sample (row, column) is number row +
                nbRows * column of a flat array, or entry [row, column] of one of shape [nbRows, nbColumns].
            params: Sizes, pose of the centre of the grid, and friction.
        """
        found = self._open_sim(sim, "add_heightfield")
        if not isinstance(params, HeightFieldParams):
            raise TypeError(f"add_heightfield: params is {params!r}, but must be a gymapi.HeightFieldParams.")
        rows, columns = int(params.nbRows), int(params.nbColumns)
        array = np.asarray(samples)
        require(
            rows >= 2 and columns >= 2 and array.size == rows * columns,
            "add_heightfield",
            f"samples has {array.size} entries, but params has {rows} rows and {columns} columns, of which "
            "there must be at least two each, and whose product is the number of samples.",
        )
        grid = array if array.ndim == 2 else array.reshape(columns, rows).T
        require(
            grid.shape == (rows, columns),
            "add_heightfield",
            f"samples has shape {array.shape}, but must be flat, or of shape ({rows}, {columns}).",
        )
        found.grounds.append(
            Ground(
                "heightfield",
                pose_row(params.transform).astype(np.float64),
                *_friction(params, "add_heightfield"),
                heights=grid.astype(np.float64) * float(params.vertical_scale),
                size=((rows - 1) * float(params.row_scale), (columns - 1) * float(params.column_scale)),
                segmentation_id=as_int(params.segmentation_id, "params.segmentation_id", "add_heightfield"),
            )
        )

    def attach_sim(self, *_: Any) -> None:
        """Not supported.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            "attach_sim: live USD stages are not supported. Load files with load_usd()."
        )

    def load_sim(self, *_: Any) -> None:
        """Not supported.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("load_sim: whole scenes are not loaded. Load assets with load_usd().")


def _check_params(params: SimParams, call: str) -> None:
    require(
        math.isfinite(params.dt) and params.dt > 0.0,
        call,
        f"dt is {params.dt} s, but must be positive and finite.",
    )
    require(
        int(params.substeps) >= 1 and int(params.substeps) == params.substeps,
        call,
        f"substeps is {params.substeps!r}, but must be a whole number of at least 1.",
    )
    physx = params.physx
    require(
        0.0 <= physx.rest_offset <= physx.contact_offset,
        call,
        f"physx.rest_offset is {physx.rest_offset} m and contact_offset {physx.contact_offset} m, but must "
        "be in 0 <= rest_offset <= contact_offset.",
    )


def _friction(params: Any, call: str) -> tuple[float, float]:
    require(
        params.static_friction >= 0.0,
        call,
        f"static_friction is {params.static_friction}, but must be >= 0.",
    )
    require(
        0.0 <= params.restitution <= 1.0, call, f"restitution is {params.restitution}, but must be in 0 to 1."
    )
    return float(params.static_friction), float(params.restitution)
