"""Pieces of the laws of drives and dry friction, after a whole step that ended in other ones than it assumed.

Reads   the terms of joints, velocity and direction, dof_impulse and dof_curvature at the velocity
Writes  dof_impulse and dof_curvature of the pieces at which the next step begins, dof_pieces

Dry friction, and a drive with an effort limit, push with y(v) = (v_0 - v) / R between -L and L. Where a joint
slides to one side and the next step takes it to the other, the law has left out its middle piece, in which
the joint sticks. Going by the velocity alone, the following step would assume that it slides to that other
side, and end where the one before began: steps of a joint that comes to rest went in circles until they gave
up. So the next piece is that of

    z = p - (v - v_0 + R p) / (w + R),

with the impulse p that the step was made with and the inverse mass w of the joint, as for the friction of
contacts ([Alart1991], `coulomb`). It skips the middle only if L could not have stopped the joint. The law
holds where z is in the piece that the step was made with, so this changes which steps are made, and not where
they end.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.model import Topology
from pluriverse.solvers.sap.workspace import DRIVE, DRY_FRICTION, sap_struct

# What `dof_pieces` may hold: a piece of the drive, and three times one of dry friction, of three each.
PIECES = 9


@made_once
def joint_piece_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return `linearize_joints` for the given precisions."""
    SapData = sap_struct(real, linear)

    @wp.func(inline=True)
    def piece_of(y: real, limit: real) -> int:
        """Return 1 or -1 where `y` is beyond a limit, 0 between both."""
        piece = int(0)
        if y > limit:
            piece = 1
        elif y < -limit:
            piece = -1
        return piece

    @wp.func(inline=True)
    def value_of(piece: int, y: real, limit: real) -> real:
        """Return what a piece of a law says where the unbounded law says `y`."""
        value = real(y)
        if piece != 0:
            value = real(piece) * limit
        return value

    @wp.func(inline=True)
    def next_piece(before: int, y: real, limit: real, share: real) -> int:
        """Return the piece of z, where `share` is R / (w + R): v - v_0 + R p is R (p - y)."""
        p = value_of(before, y, limit)
        return piece_of(p + share * (y - p), limit)

    @wp.func(inline=True)
    def linearize_joints(
        topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, dt: real, is_first: int
    ):
        """Replace impulses and curvatures at `velocity` by those of the pieces for the next step.

        With `is_first`, the last step was made with the pieces at its start, else with those of `dof_pieces`.
        """
        one = real(1.0)
        dof0 = topology.world_dof[world]
        for dof in range(dof0 + sap.part_dof[world], dof0 + sap.part_dof_end[world]):
            terms = wp.max(sap.dof_terms[dof], 0)  # those of other groups are negative
            if terms & (DRIVE | DRY_FRICTION):
                velocity = sap.velocity[dof]
                start = velocity - sap.direction[dof]
                drive, friction = sap.dof_pieces[dof] % 3 - 1, sap.dof_pieces[dof] / 3 % 3 - 1
                impulse, curvature = real(sap.dof_impulse[dof]), real(sap.dof_curvature[dof])
                if terms & DRIVE:
                    stiffness = dt * sap.drive_gain[dof]  # 1 / R, 0 of an effort that is given
                    most = dt * sap.drive_limit[dof]
                    y = dt * sap.drive_offset[dof] - stiffness * velocity
                    if is_first != 0:
                        drive = piece_of(dt * sap.drive_offset[dof] - stiffness * start, most)
                    now = piece_of(y, most)
                    drive = next_piece(drive, y, most, one / (sap.dof_scale[dof] * stiffness + one))
                    if drive != now:
                        impulse += value_of(drive, y, most) - value_of(now, y, most)
                        curvature += real(int(drive == 0) - int(now == 0)) * stiffness
                if terms & DRY_FRICTION:
                    stiffness_dry = one / sap.friction_regularization[dof]
                    most_dry = sap.friction_impulse[dof]
                    y_dry = -stiffness_dry * velocity
                    if is_first != 0:
                        friction = piece_of(-stiffness_dry * start, most_dry)
                    now_dry = piece_of(y_dry, most_dry)
                    share = one / (sap.dof_scale[dof] * stiffness_dry + one)
                    friction = next_piece(friction, y_dry, most_dry, share)
                    if friction != now_dry:
                        impulse += value_of(friction, y_dry, most_dry) - value_of(now_dry, y_dry, most_dry)
                        curvature += real(int(friction == 0) - int(now_dry == 0)) * stiffness_dry
                sap.dof_pieces[dof] = drive + 1 + 3 * (friction + 1)
                sap.dof_impulse[dof] = impulse
                sap.dof_curvature[dof] = curvature

    return SimpleNamespace(linearize_joints=linearize_joints)
