"""SolverMuJoCo: the solver that users make and step; the conversion and the engines do the work."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from pluriverse.model import Model
from pluriverse.model.world_selection import resolve_worlds
from pluriverse.mujoco_attributes.choices import CtrlSource, CtrlType, TrnType
from pluriverse.mujoco_attributes.registration import register_custom_attributes
from pluriverse.newton_names import missing
from pluriverse.solvers.mujoco.caveats import warn_of_edited_shapes
from pluriverse.solvers.mujoco.engine import EngineOptions
from pluriverse.solvers.mujoco.engine_choice import make_engine
from pluriverse.solvers.mujoco.engine_solver import EngineSolver
from pluriverse.solvers.mujoco.export import save_world
from pluriverse.solvers.mujoco.inspection import MAPS, fill_data, make_map, shape_geoms
from pluriverse.solvers.mujoco.mapping.conversion import convert_model
from pluriverse.solvers.mujoco.mapping.field_sync import FieldSync
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.refresh import refresh_groups
from pluriverse.solvers.mujoco.options import OPTION_NAMES, MujocoOptions
from pluriverse.solvers.mujoco.versions import warp_takes_margins
from pluriverse.types import EqType, ModelFlags


class SolverMuJoCo(EngineSolver):
    """Soft constraints solved by MuJoCo: its C engine on a CPU, MuJoCo Warp on a GPU.

    Worlds may differ in everything. Those of one structure share a MuJoCo model (a group), with values per
    world where they differ (masses, gains, limits, materials, gravity).

    Options of MuJoCo (`iterations`, `ls_iterations`, `ccd_iterations`, `sdf_iterations`, `sdf_initpoints`,
    `noslip_iterations`, `noslip_tolerance`, `solver`, `integrator`, `cone`, `jacobian`, `impratio`,
    `tolerance`, `ls_tolerance`, `ccd_tolerance`, `density`, `viscosity`, `wind`, `magnetic`,
    `sleep_tolerance`, `enable_multiccd`, `enable_sleeping`, `disable_contacts`,
    `disable_sensors`) apply to all worlds. An option that is not given comes from `model.mujoco.<option>`,
    which may differ between worlds, else from MuJoCo's default, except that the integrator is `implicitfast`.

    Args:
        model: Model to simulate.
        use_mujoco_cpu: Whether to step in MuJoCo's C engine, rather than in MuJoCo Warp. None: on a CPU.
        use_mujoco_contacts: Whether MuJoCo finds the contacts. Otherwise those given to `step` are solved.
        include_sites: Whether shapes that are sites become sites of MuJoCo.
        skip_visual_only_geoms: Whether shapes that never collide are left out.
        save_to_mjcf: Where to write the first world as an MJCF file; see `save_to_mjcf`.
        separate_worlds: Changes nothing: worlds are always separate. False is an error if there are several.
        use_speculative_contacts: Not supported; must be False.
        njmax_nnz, nvmax, deterministic, strict_capacity, kinematic_switchable_roots: Accepted for
            compatibility. Memory grows as needed, results on a CPU are reproducible to the bit,
            `report(strict=True)` raises if something was lost, and the roots of a model with kinematic bodies
            may become dynamic or kinematic at any time.
        **settings: Options of MuJoCo as above, and those of the engine (`EngineOptions`).

    Raises:
        TypeError: If `model` is no Model, or an argument is unknown.
        ValueError: If an argument is out of range, or MuJoCo cannot represent part of the model.
    """

    # Enumerations of equality constraints, controls and actuators, where scripts written for Newton expect
    # them.
    EqType = EqType
    CtrlSource = CtrlSource
    CtrlType = CtrlType
    TrnType = TrnType
    options: MujocoOptions
    """MuJoCo's options, as given."""
    groups: list[MujocoGroup]
    """The worlds by structure, each with its MuJoCo model."""
    world_group: np.ndarray
    """Group of each world, shape [world]."""
    world_row: np.ndarray
    """Index of each world in its group, shape [world]."""

    def __init__(
        self,
        model: Model,
        *,
        use_mujoco_cpu: bool | None = None,
        use_mujoco_contacts: bool = True,
        include_sites: bool = True,
        skip_visual_only_geoms: bool = True,
        save_to_mjcf: str | Path | None = None,
        separate_worlds: bool | None = None,
        use_speculative_contacts: bool = False,
        njmax_nnz: int | None = None,
        nvmax: int | None = None,
        deterministic: Any = None,
        strict_capacity: bool = False,
        kinematic_switchable_roots: bool = True,
        **settings: Any,
    ):
        super().__init__(model, use_mujoco_contacts=use_mujoco_contacts)
        if separate_worlds is False and model.world_count > 1:
            raise ValueError(
                f"SolverMuJoCo: separate_worlds is False, but the model has {model.world_count} worlds, "
                "which never touch here. Leave it out, and put what should touch into one world."
            )
        if use_speculative_contacts:
            raise ValueError(
                "SolverMuJoCo: use_speculative_contacts is True, but contacts of shapes that are apart are "
                "not supported. Leave it out, and give fast shapes a margin or a shorter time step."
            )
        on_cpu = model.device.is_cpu if use_mujoco_cpu is None else use_mujoco_cpu
        given = {name: settings.pop(name) for name in OPTION_NAMES if name in settings}
        self.options = MujocoOptions(
            **given,
            use_mujoco_contacts=use_mujoco_contacts,
            include_sites=include_sites,
            skip_visual_only_geoms=skip_visual_only_geoms,
            enforce_velocity_limit=bool(settings.get("enforce_velocity_limit")),
            keep_margins=on_cpu or not use_mujoco_contacts or warp_takes_margins(),
        )
        engine_options = EngineOptions(
            use_mujoco_cpu=on_cpu, use_mujoco_contacts=use_mujoco_contacts, **settings
        )
        self.groups = convert_model(model, self.options)
        self.world_group = np.zeros(model.world_count, dtype=np.int64)
        self.world_row = np.zeros(model.world_count, dtype=np.int64)
        for index, group in enumerate(self.groups):
            self.world_group[group.worlds] = index
            self.world_row[group.worlds] = np.arange(group.world_count)
        self.engine = make_engine(self, engine_options)
        self._mj_data: tuple[int, Any, Any] | None = None
        self._field_sync = FieldSync(model, self.options, self.groups, self.engine)
        if save_to_mjcf is not None:
            self.save_to_mjcf(save_to_mjcf)

    @property
    def mj_model(self) -> Any:
        """MuJoCo's model (`mujoco.MjModel`) of the first world, where all worlds have one structure.

        Values that differ between the worlds are in `groups[0].fields`.

        Raises:
            AttributeError: If worlds have several structures.
        """
        if len(self.groups) != 1:
            raise AttributeError  # __getattr__ says why, whatever is said here
        return self.groups[0].model

    @property
    def mj_data(self) -> Any:
        """Copy of what the last step left of the first world (`mujoco.MjData`), where all have one structure.

        It is evaluated by `mujoco.mj_forward`, and filled anew each time it is read. Writing to it changes
        nothing: steps start from State and Control.

        Raises:
            AttributeError: If worlds have several structures.
        """
        if len(self.groups) != 1:
            raise AttributeError
        group = self.groups[0]
        if self._mj_data is None or self._mj_data[0] != group.revision:
            import mujoco

            model = copy.copy(group.model)
            self._mj_data = group.revision, model, mujoco.MjData(model)
        fill_data(self._mj_data[1], self._mj_data[2], self.engine)
        return self._mj_data[2]

    @property
    def mjw_model(self) -> Any:
        """Model of MuJoCo Warp, where it steps all worlds and they have one structure.

        Raises:
            AttributeError: If the C engine steps them, or worlds have several structures.
        """
        if not self.engine.warp_groups or len(self.groups) != 1:
            raise AttributeError
        return self.engine.warp_groups[0].model

    @property
    def mjw_data(self) -> Any:
        """Data of MuJoCo Warp, a row per world, where it steps all worlds and they have one structure.

        Raises:
            AttributeError: If the C engine steps them, or worlds have several structures.
        """
        if not self.engine.warp_groups or len(self.groups) != 1:
            raise AttributeError
        return self.engine.warp_groups[0].data

    @property
    def newton_shape_to_mjc_geom(self) -> wp.array[int]:
        """MuJoCo's geom of each shape, -1 for none, shape [shape]."""
        return shape_geoms(self.groups, self.model.shape_count, self.model.device)

    if not TYPE_CHECKING:  # whose users shall go on to hear of attributes that do not exist

        def __getattr__(self, name: str) -> Any:
            """Return a map from MuJoCo's entities (`MAPS`), or say where the engines' own objects are.

            Raises:
                AttributeError: If it is neither.
            """
            what = f"'{type(self).__name__}' object has no attribute {name!r}"
            if "groups" not in vars(self):
                raise AttributeError(what)
            is_map = name in MAPS
            if is_map and len(self.groups) == 1:
                return make_map(self.groups[0], name, self.model.device)
            if name in ("mj_model", "mj_data", "mjw_model", "mjw_data") or is_map:
                if len(self.groups) != 1:
                    raise AttributeError(
                        f"{what}: the worlds have {len(self.groups)} structures, each with a model of its "
                        "own. Use groups[k].model and its maps, such as groups[k].joint_qpos; "
                        "world_group[w] is the group of world w, world_row[w] its row there."
                    )
                raise AttributeError(
                    f"{what}: MuJoCo's C engine steps the worlds. Use mj_model and mj_data, or pass "
                    "use_mujoco_cpu=False."
                )
            if name.startswith("mjc_actuator"):
                raise AttributeError(
                    f"{what}: groups[k].position_ctrl, velocity_ctrl and effort_ctrl are the entries of ctrl "
                    "of each degree of freedom, and direct_ctrl those of general actuators."
                )
            if name.startswith(("mjc_", "to_mjc_")):
                raise AttributeError(
                    f"{what}: groups[k] maps entities to MuJoCo's models, as in "
                    "groups[k].joint_qpos and groups[k].dof_qvel, whose first_body, first_joint, ... are "
                    "the first entities of each world."
                )
            raise missing("SolverMuJoCo", name)

    @staticmethod
    def import_mujoco() -> tuple[Any, Any]:
        """Return the modules `mujoco` and `mujoco_warp`.

        Raises:
            ImportError: If MuJoCo Warp is not installed, or made for another MuJoCo.
        """
        import mujoco

        from pluriverse.solvers.mujoco.warp.group import load_mujoco_warp

        return mujoco, load_mujoco_warp()

    @staticmethod
    def register_custom_attributes(builder: Any) -> None:
        """Declare the namespace `mujoco`, in which importers store MuJoCo's actuators, springs and options.

        Call it before anything is added to the `ModelBuilder`, which is then for this solver. Without it
        `add_mjcf` keeps there what the model lacks, and actuators are drives that every solver has.
        """
        register_custom_attributes(builder)

    def notify_model_changed(self, flags: ModelFlags | int) -> None:
        """Update MuJoCo's models after arrays of the model were written to.

        In contrast to `SolverSAP`, changes take no effect before this call, or before `sync_worlds` for
        tracked arrays.

        Args:
            flags: What was written to.

        Raises:
            ValueError: If a value is not allowed, an array of the structure was written to, or a flag is
                unknown.
        """
        super().notify_model_changed(flags)
        self._refresh(ModelFlags(flags))

    def track_model(
        self, names: Iterable[str] | Mapping[str, np.ndarray | None], *, meshes: Sequence[Any] = ()
    ) -> None:
        """Track arrays of the model that will be written to on the device.

        From then on `sync_worlds` updates MuJoCo's models from these arrays, and from no others. Call it
        before anything is recorded, since fields move to other memory.

        Args:
            names: Names of arrays of the model; or a mapping from names to masks of the entries that may take
                any value, which matters for sizes of shapes.
            meshes: Meshes that shapes may be given; see `mapping.field_sync.VariantRows`.

        Raises:
            ValueError: If MuJoCo has something compiled in; the message names it.
        """
        self._field_sync.add(names if isinstance(names, Mapping) else dict.fromkeys(names), meshes)

    def sync_worlds(self, worlds: Any = None) -> None:
        """Update MuJoCo's models for worlds whose tracked arrays were written to.

        Only kernels are launched, so the call may be recorded.

        Args:
            worlds: Indices, or one truth value per world; on the host or on the device, where they are not
                read back. None for all.

        Raises:
            IndexError: If there is no such world.
            TypeError: If `worlds` are neither whole numbers nor truth values.
            ValueError: If a mask has not one entry per world, or an array is on another device.
        """
        what = f"{type(self).__name__}.sync_worlds"
        self._field_sync.launch(resolve_worlds(self.model, worlds, what=what))

    def sync_from_model(self) -> None:
        """Update MuJoCo's models after all arrays of the model were written to."""
        self._refresh(ModelFlags.ALL)

    def _refresh(self, flags: ModelFlags) -> None:
        changes = refresh_groups(self.model, self.options, self.groups, flags)
        for index, names in enumerate(changes):
            if names:
                self.engine.fields_changed(index, names)
        self._field_sync.sync_from_host()
        if flags & ModelFlags.SHAPE_PROPERTIES:
            warn_of_edited_shapes(self.model, self.groups)

    def save_to_mjcf(self, path: str | Path, *, world: int = 0) -> None:
        """Write a world as MuJoCo has it into an MJCF file, with its initial state as a keyframe.

        Force-space stiffness and damping of limits are not saved, since MJCF cannot express them.

        Args:
            path: File to write.
            world: World to write.

        Raises:
            IndexError: If there is no such world.
        """
        if not 0 <= world < self.model.world_count:
            raise IndexError(
                f"SolverMuJoCo.save_to_mjcf: world {world} does not exist; the model has worlds 0 to "
                f"{self.model.world_count - 1}."
            )
        save_world(self.model, self.options, self.groups[self.world_group[world]], world, Path(path))
