"""Joint selection: which bodies a call of forward kinematics places.

Reads   masks and indices of a caller
Writes  the selected joints, 1 or 0 each
"""

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Model, Topology
from pluriverse.model.arguments import check_indices
from pluriverse.types import BodyFlags


@wp.kernel(enable_backward=False)
def mark_articulation(
    indices: wp.array[int],  # [entry] articulation
    selected: wp.array[int],  # [articulation]
):
    """Select the articulation of one entry; entries that name none are ignored."""
    thread, _ = wp.tid()
    articulation = indices[thread]
    if articulation >= 0 and articulation < selected.shape[0]:
        selected[articulation] = 1


@wp.kernel(enable_backward=False)
def mark_masked_articulation(
    mask: wp.array[bool],  # [articulation]
    selected: wp.array[int],  # [articulation]
):
    """Select one articulation, or not."""
    articulation, _ = wp.tid()
    selected[articulation] = wp.where(mask[articulation], 1, 0)


@wp.kernel(enable_backward=False)
def select_joint(
    # model
    joint_articulation: wp.array[int],  # [joint]
    joint_child: wp.array[int],  # [joint]
    body_flags: wp.array[int],  # [body]
    # what to select by
    articulation_selected: wp.array[int],  # [articulation] empty: all
    joint_mask: wp.array[bool],  # [joint] empty: all
    body_flag_filter: int,
    selected: wp.array[int],  # [joint]
):
    """Select one joint if everything asked for holds."""
    joint, _ = wp.tid()
    result = int(0)
    if body_flags[joint_child[joint]] & body_flag_filter:
        result = 1
    if articulation_selected.shape[0] > 0:
        articulation = joint_articulation[joint]
        if articulation < 0:
            result = 0
        else:
            result = result * articulation_selected[articulation]
    if joint_mask.shape[0] > 0:
        if not joint_mask[joint]:
            result = 0
    selected[joint] = result


@wp.kernel(enable_backward=False)
def select_world_joint(
    worlds: wp.array[int],  # [slot]
    # model
    topology: Topology,
    joint_articulation: wp.array[int],  # [joint]
    # what to select by
    mask: wp.array[bool],  # [articulation]
    selected: wp.array[int],  # [joint]
):
    """Select the joints of one world whose articulations a mask selects."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    template = topology.world_template[world]
    first_joint = topology.world_joint[world]
    for index in range(topology.template_node[template], topology.template_node[template + 1]):
        joint = first_joint + topology.node_joint[index]
        articulation = joint_articulation[joint]
        result = int(0)
        if articulation >= 0:
            if mask[articulation]:
                result = 1
        selected[joint] = result


class JointSelection:
    """Selections of joints, kept per model: a recorded one stays valid, and later ones allocate nothing.

    Args:
        model: Model of the joints.
    """

    all: wp.array
    """The empty selection, which stands for all joints."""

    def __init__(self, model: Model):
        self._model = model
        self._articulation_selected = wp.zeros(model.articulation_count, dtype=int, device=model.device)
        self._joint_selected = wp.zeros(model.joint_count, dtype=int, device=model.device)
        self._no_mask = wp.empty(0, dtype=wp.bool, device=model.device)
        self.all = wp.empty(0, dtype=int, device=model.device)

    def of_worlds(self, worlds: wp.array, mask: wp.array) -> wp.array:
        """Select the joints of the worlds given that belong to articulations of a mask."""
        launch_kernel(
            select_world_joint,
            dim=worlds.size,
            inputs=[worlds, self._model.topology, self._model.structure.joint_articulation, mask],
            outputs=[self._joint_selected],
            device=self._model.device,
        )
        return self._joint_selected

    def of_arguments(
        self,
        mask: wp.array | None,
        indices: wp.array | None,
        joint_mask: wp.array | None,
        body_flag_filter: int,
    ) -> wp.array:
        """Select the joints that the arguments of `eval_fk` ask for.

        Raises:
            TypeError: If a mask is no Warp array.
            ValueError: If both `mask` and `indices` are given, or a mask has the wrong shape, type or device.
        """
        filtered = body_flag_filter & BodyFlags.ALL != BodyFlags.ALL
        if mask is None and indices is None and joint_mask is None and not filtered:
            return self.all
        if mask is not None and indices is not None:
            raise ValueError(
                "eval_fk: both mask and indices were given; pass the articulations one way only."
            )
        for name, given, kind, count in (
            ("mask", mask, "articulation", self._model.articulation_count),
            ("joint_mask", joint_mask, "joint", self._model.joint_count),
        ):
            if given is not None and not isinstance(given, wp.array):
                raise TypeError(
                    f"eval_fk: {name} is a {type(given).__name__}, but must be a Warp array: "
                    f"wp.array({name}, dtype=wp.bool, device=model.device)."
                )
            if given is not None and given.shape != (count,):
                raise ValueError(
                    f"eval_fk: {name} has shape {given.shape}, but the model has {count} {kind}s; pass one "
                    f"entry per {kind}."
                )
        if joint_mask is not None and (
            joint_mask.dtype is not wp.bool or joint_mask.device != self._model.device
        ):
            raise ValueError(
                f"eval_fk: joint_mask has type {joint_mask.dtype.__name__} on {joint_mask.device}, but must "
                f"be made of truth values on {self._model.device}."
            )
        articulations = self.all
        if mask is not None:
            if mask.device != self._model.device:
                raise ValueError(
                    f"eval_fk: mask is on {mask.device}, but the model is on {self._model.device}."
                )
            articulations = self._articulation_selected
            launch_kernel(
                mark_masked_articulation,
                dim=mask.size,
                inputs=[mask],
                outputs=[articulations],
                device=self._model.device,
            )
        elif indices is not None:
            check_indices(self._model, indices, "eval_fk: indices")
            articulations = self._articulation_selected
            articulations.zero_()
            launch_kernel(
                mark_articulation,
                dim=indices.size,
                inputs=[indices],
                outputs=[articulations],
                device=self._model.device,
            )
        launch_kernel(
            select_joint,
            dim=self._model.joint_count,
            inputs=[
                self._model.structure.joint_articulation,
                self._model.structure.joint_child,
                self._model.structure.body_flags,
                articulations,
                self._no_mask if joint_mask is None else joint_mask,
                int(body_flag_filter),
            ],
            outputs=[self._joint_selected],
            device=self._model.device,
        )
        return self._joint_selected
