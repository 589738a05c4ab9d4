"""Kernels compile for CUDA, on machines without a GPU too: Warp brings the compiler along."""

import re
from importlib import import_module
from itertools import accumulate

import pytest
import warp as wp

CUDA_ARCHITECTURE = 80
"""Ampere: has every instruction that the kernels use, and later devices run its code."""
PARAMETER_BYTES_MAX = 32_764
"""What the arguments of a kernel may take from CUDA 12.1 on."""
SHARED_BYTES_MAX = 48 * 1024
"""What variables that the threads of a block share may take."""
LOCAL_BYTES_MAX = 512 * 1024
"""What the variables of a thread may take. All three are in the CUDA programming guide."""


def sap_kernels():
    names = ("newton", "contact", "equality_terms", "joint_terms", "step_status", "restitution")
    newton, contact, equality_terms, joint_terms, outcome, restitution = (
        import_module(f"pluriverse.solvers.sap.{name}") for name in names
    )
    f32, f64 = wp.float32, wp.float64
    return [
        newton._kernels(f64, f32, f32, equality=True, moments=True).minimize_objective,
        newton._kernels(f64, f64, f64, equality=False, moments=False).minimize_objective,
        contact._kernels(f64, f32, f32, f32).set_contact_terms,
        equality_terms._kernels(f64, f32, f32).set_equality_term,
        joint_terms._kernels(f64, f32, f32).set_joint_terms,
        outcome._kernels(f64, f32).finalize_step,
        import_module("pluriverse.solvers.sap.moment_terms")._kernels(f64, f32).set_moment_terms,
        import_module("pluriverse.solvers.sap.spring_terms")._kernels(f64, f32, f32).set_spring_term,
        restitution._kernels(f64, f32, f32).add_restitution,
    ]


def dynamics_kernels():
    stages = ("rigid_groups", "kinematics", "bias", "mass_matrix", "factorization", "balance")
    stages += ("integration", "body_placing")
    factories = [import_module(f"pluriverse.dynamics.{stage}")._kernels for stage in stages]
    return [next(iter(vars(factory(wp.float32)).values())) for factory in factories]


def collision_kernels():
    return [
        import_module("pluriverse.collision.convex.box_box").collide_box_box_pairs,
        # Those of height fields and meshes take NVRTC close to a minute each.
        import_module("pluriverse.collision.surface.mesh_plane").collide_mesh_plane_pairs,
        import_module("pluriverse.collision.shape_update").update_world_shapes,
        import_module("pluriverse.collision.broad_phase").find_near_pair,
        import_module("pluriverse.collision.hydroelastic.convex_pair").collide_hydroelastic_pairs,
        import_module("pluriverse.collision.hydroelastic.mesh_pair").collide_hydroelastic_mesh_pairs,
        import_module("pluriverse.geometry.signed_distance_grid").sample_point,
    ]


def query_kernels():
    dynamics = [
        import_module(f"pluriverse.dynamics.{stage}")._kernels(wp.float32)
        for stage in ("articulation_jacobian", "articulation_mass_matrix", "inverse_dynamics")
    ]
    dynamics += [
        import_module(f"pluriverse.dynamics.{stage}")._kernels()
        for stage in ("inverse_kinematics", "momenta")
    ]
    return [next(iter(vars(kernels).values())) for kernels in dynamics]


def data_kernels():
    return [
        *vars(import_module("pluriverse.selection.transfer")._kernels(wp.uint32)).values(),
        import_module("pluriverse.selection.row_mask").mark_row,
        import_module("pluriverse.simulation.world_copy").copy_world,
        import_module("pluriverse.solvers.unfreeze").unfreeze_world,
        import_module("pluriverse.launch_list").make_launches,
    ]


def variant_kernels():
    return [
        import_module("pluriverse.variants.environments").draw_variant,
        import_module("pluriverse.variants.pool").acquire_worlds,
        import_module("pluriverse.variants.row_copy")._copy_kernel(wp.int32),
        import_module("pluriverse.variants.row_copy")._copy_kernel(wp.bool),
        import_module("pluriverse.randomization.write").write_property,
        import_module("pluriverse.randomization.inertia").transform_pseudo_inertia,
        import_module("pluriverse.randomization.bounds").update_bounds,
        import_module("pluriverse.randomization.state").write_initial_state,
    ]


def mujoco_kernels():
    """Return the kernels around MuJoCo Warp; those of the C engine run on a CPU only."""
    exchange = import_module("pluriverse.solvers.mujoco.exchange.joints")._kernels(wp.float32)
    followers = [
        import_module("pluriverse.solvers.mujoco.mapping.body_kernels")
        .body_kernels(wp.float32)
        .update_frames,
        import_module("pluriverse.solvers.mujoco.mapping.joint_kernels")
        .joint_kernels(wp.float32)
        .update_drives,
        import_module("pluriverse.solvers.mujoco.mapping.shape_kernels")
        .shape_kernels(wp.float32)
        .update_placement,
        import_module("pluriverse.solvers.mujoco.mapping.constraint_kernels")
        .constraint_kernels(wp.float32)
        .update_distances,
        import_module("pluriverse.solvers.mujoco.mapping.pair_kernels").pair_kernels(wp.float32).update_pairs,
        import_module("pluriverse.solvers.mujoco.mapping.stages").select_world,
    ]
    return [
        *followers,
        exchange.push_world,
        import_module("pluriverse.solvers.mujoco.warp.step_status").finalize_row,
        import_module("pluriverse.solvers.mujoco.warp.velocity_limit").limit_row_speed,
        import_module("pluriverse.solvers.mujoco.warp.external_contacts").push_external_contact,
        import_module("pluriverse.solvers.mujoco.exchange.contact_copy").copy_world_contact,
        import_module("pluriverse.solvers.mujoco.exchange.restore").restore_world,
    ]


def learning_kernels():
    """Return kernels of robot tensors, sensors of models, actuators and environments, one of each module."""
    accelerations = import_module("pluriverse.sensors.accelerations")._kernels()
    return [
        accelerations.accelerate_world,
        import_module("pluriverse.sensors.measure").measure_sensor,
        import_module("pluriverse.sensors.contact_wrenches").sum_contact_wrench,
        import_module("pluriverse.sensors.corruption").corrupt_sensor,
        import_module("pluriverse.sensors.range_finders").find_range,
        import_module("pluriverse.tensors.commands").apply_commands,
        import_module("pluriverse.actuators.exert").exert_world,
        import_module("pluriverse.envs.random").draw_uniform,
        import_module("pluriverse.envs.tasks.velocity_terms").value_terms,
    ]


def ik_kernels():
    kernels = [
        import_module(f"pluriverse.ik.{module}")._kernels()
        for module in ("kinematics", "retraction", "levenberg_marquardt", "lbfgs", "sampling")
    ]
    return [
        *(next(iter(vars(of_module).values())) for of_module in kernels),
        import_module("pluriverse.ik.kinematics").pull_back_row,
        import_module("pluriverse.ik.rotation").write_rotation_residual,
        import_module("pluriverse.ik.rotation").write_rotation_jacobian,
        import_module("pluriverse.ik.joint_limit").write_limit_jacobian,
        import_module("pluriverse.ik.followers").fold_row,
        import_module("pluriverse.ik.solver").choose_row,
        import_module("pluriverse.ik.optimizer").begin_row,
    ]


def render_kernels():
    return [
        import_module("pluriverse.render.raycast.tree").make_world_tree,
        import_module("pluriverse.render.raycast.caster").cast_ray,
        import_module("pluriverse.render.raycast.sensing").sense_pixel,
        import_module("pluriverse.render.raycast.shading").render_pixel,
    ]


PARAMETER = re.compile(r"\.param (?:\.align (\d+) )?\.[bfsu](\d+) (?:\.ptr [^,]*)?\w+(?:\[(\d+)\])?")


def parameter_bytes(declarations: str) -> int:
    """Return what the parameters of a kernel take in PTX, each aligned."""

    def end(before: int, found: re.Match) -> int:
        size = int(found[2]) // 8
        alignment = int(found[1] or size)
        return -(-before // alignment) * alignment + size * int(found[3] or 1)

    return list(accumulate(PARAMETER.finditer(declarations), end, initial=0))[-1]


def test_parameters_are_counted_with_their_gaps():
    """An integer of 4 bytes, a gap of 4, a struct of 20, a gap of 4 and a pointer."""
    text = ".param .u32 a,\n.param .align 8 .b8 b[20],\n.param .u64 .ptr .global .align 1 c"
    assert parameter_bytes(text) == 40


@pytest.mark.parametrize(
    "make_kernels",
    [
        sap_kernels,
        dynamics_kernels,
        collision_kernels,
        query_kernels,
        ik_kernels,
        data_kernels,
        variant_kernels,
        mujoco_kernels,
        learning_kernels,
        render_kernels,
    ],
)
def test_native_snippets_and_generated_code_are_valid_cuda(make_kernels, tmp_path):
    """Every stage of a step is accepted by NVRTC for both precisions that it mixes.

    It is optimized as for a user: with less, NVRTC takes three times as long for small kernels, and about as
    long for large ones. The result is PTX, which takes a third of the time of machine code, and what the
    assembler could still refuse is looked for in it.
    """
    for kernel in make_kernels():
        (path,) = wp.compile_aot_module(
            kernel.module, arch=CUDA_ARCHITECTURE, module_dir=tmp_path / kernel.key, use_ptx=True
        )
        text = path.read_text()
        entries = re.findall(r"\.entry (\w+)\((.*?)\)", text, re.DOTALL)
        assert any(name.startswith(kernel.key) for name, _ in entries), kernel.key
        for name, declarations in entries:
            assert 0 < parameter_bytes(declarations) <= PARAMETER_BYTES_MAX, name
        for kind, limit in (("local", LOCAL_BYTES_MAX), ("shared", SHARED_BYTES_MAX)):
            sizes = re.findall(rf"^\s*\.{kind} .*\[(\d+)\];", text, re.MULTILINE)
            assert sum(map(int, sizes)) <= limit, (kernel.key, kind)
