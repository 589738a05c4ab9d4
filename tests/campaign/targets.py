"""The public calls of the campaign: how each is made, and what is wrong in the place of each argument."""

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import pluriverse as pv
from pluriverse import Contacts, ModelBuilder, Simulation, dynamics, gymapi
from pluriverse.collision import CollisionPipeline
from pluriverse.randomization import Property, Randomizer, Uniform, friction
from pluriverse.selection import ArticulationView
from pluriverse.solvers import SolverMuJoCo, SolverSAP
from tests.campaign import values as wrong
from tests.campaign.reading_targets import reading_targets, shape_targets
from tests.campaign.target import Target
from tests.gymapi.scenes import CARTPOLE, add_env, at, make_sim, undamped
from tests.reliability.scenes import make_boxes


# What the author of a script may catch. SystemExit with a message is how the command line refuses.
def make_targets(folder: Path) -> Iterator[Target]:
    """Yield all calls."""
    yield from step_targets(folder)
    yield from builder_targets()
    yield from view_targets()
    yield from reading_targets(folder)
    yield from shape_targets(folder)
    yield from dynamics_targets()
    yield from variant_targets()
    yield from actor_targets(folder)
    yield from command_targets(folder)


def step_targets(folder: Path) -> Iterator[Target]:
    """Yield the calls of the loop: simulation, solvers, pipeline, state, control, contacts and model."""
    model, other = make_boxes(), make_boxes(1, box_count=3)
    foreign = {
        "state": wrong.either(wrong.NO_OBJECT, wrong.one_of(other.state, lambda: other)),
        "control": wrong.either(
            wrong.one_of("x", 3, wrong.Stranger, lambda: model), wrong.one_of(other.control)
        ),
        "contacts": wrong.either(
            wrong.one_of("x", 3, wrong.Stranger, lambda: model), wrong.one_of(lambda: Contacts(other, 4))
        ),
    }
    for label, make in (
        ("SolverSAP", SolverSAP),
        ("SolverMuJoCo", SolverMuJoCo),
        ("SolverMuJoCo(fed)", lambda model: SolverMuJoCo(model, use_mujoco_contacts=False)),
    ):
        solver = make(model)
        simulation = Simulation(model, solver, dt=0.005, threads=2)
        yield Target(
            f"{label}.step",
            solver.step,
            {
                "state_in": model.state,
                "state_out": model.state,
                "control": model.control,
                "contacts": lambda: Contacts(model, 4),
                "dt": lambda: 0.01,
                "worlds": lambda: wp.array([0, 2], dtype=int),
            },
            {
                "state_in": foreign["state"],
                "state_out": foreign["state"],
                "control": foreign["control"],
                "contacts": foreign["contacts"],
                "dt": wrong.DT,
                "worlds": wrong.DEVICE_WORLDS,
            },
            simulation=simulation,
        )
        yield Target(
            f"{label}.unfreeze",
            solver.unfreeze,
            {"worlds": lambda: [0]},
            {"worlds": wrong.WORLDS},
            simulation=simulation,
        )
        yield Target(
            f"{label}.notify_model_changed",
            solver.notify_model_changed,
            {"flags": lambda: 0},
            {"flags": wrong.FLAGS},
            simulation=simulation,
        )
        yield Target(
            f"Simulation({label}).reset",
            simulation.reset,
            {"worlds": lambda: [0], "state": model.state},
            {
                "worlds": wrong.WORLDS,
                "state": wrong.either(wrong.one_of("x", 3, wrong.Stranger, other.state)),
            },
            simulation=simulation,
        )
        yield Target(
            f"Simulation({label}).reset on the device",
            simulation.reset,
            {"worlds": lambda: [0]},
            {"worlds": wrong.INDICES},
            simulation=simulation,
        )
        path = folder / f"{label}.npz"
        simulation.save(path)
        yield Target(
            f"Simulation({label}).restore",
            simulation.restore,
            {"snapshot": lambda path=path: path},
            {"snapshot": wrong.FILE},
            simulation=simulation,
        )
        yield Target(
            f"Simulation({label}).restore of damaged files",
            simulation.restore,
            {"snapshot": lambda path=path: path},
            {"snapshot": wrong.damaged_file(path)},
            may_pass=frozenset({"snapshot"}),
            simulation=simulation,
        )
        yield Target(
            f"Simulation({label}).step",
            simulation.step,
            {"count": lambda: 1},
            {"count": wrong.STEP_COUNT},
            simulation=simulation,
        )
        yield Target(
            f"Simulation({label})",
            lambda make=make, **arguments: Simulation(model, make(model), **arguments),
            {"dt": lambda: 0.01, "decimation": lambda: 1},
            {
                "dt": wrong.DT,
                "decimation": wrong.COUNT,
                "threads": wrong.one_of(-1, 0, 1.5, "x", wrong.Stranger),
                "rigid_contact_max": wrong.one_of(-1, 1.5, "x", [1, 2], wrong.Stranger, [-1, 2, 3]),
            },
        )
    yield Target(
        "Simulation of a solver",
        lambda solver: Simulation(model, solver, dt=0.01),
        {"solver": lambda: SolverSAP(model)},
        {"solver": wrong.one_of("x", 3, wrong.Stranger, lambda: SolverSAP(other), lambda: SolverSAP)},
    )
    pipeline = CollisionPipeline(model)
    yield Target(
        "CollisionPipeline.collide",
        pipeline.collide,
        {"state": model.state, "contacts": pipeline.contacts, "worlds": lambda: wp.array([1], dtype=int)},
        {
            "state": foreign["state"],
            "contacts": wrong.either(foreign["contacts"], wrong.NO_OBJECT),
            "worlds": wrong.DEVICE_WORLDS,
        },
        simulation=simulation,
    )
    for holder, names in (
        (model, ("body_mass", "joint_X_p", "shape_material_mu", "gravity", "joint_q")),
        (model.control(), ("joint_f", "joint_target_pos", "joint_act")),
        (pipeline.contacts(), ("rigid_contact_shape0", "rigid_contact_count", "rigid_contact_point0")),
    ):
        for name in names:
            array = getattr(holder, name)
            yield Target(
                f"{type(holder).__name__}.{name} =",
                lambda value, holder=holder, name=name: setattr(holder, name, value),
                {"value": lambda array=array: wp.clone(array)},
                {"value": wrong.shaped(tuple(array.shape), tuple(array.numpy().shape))},
            )
    yield Target(
        "Model.set_gravity",
        model.set_gravity,
        {"gravity": lambda: (0.0, 0.0, -9.81), "world": lambda: None},
        {"gravity": wrong.either(wrong.one_of((0, 0), (wrong.NAN, 0, 0), [[0, 0, 1]] * 7, wrong.INF)),
         "world": wrong.one_of(-1, 3, 10**6, [0, 9], [-7])},
    )  # fmt: skip


def builder_targets() -> Iterator[Target]:
    """Yield the calls that describe a robot, each followed by `finalize`, which checks numbers."""

    def described(method: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            builder = ModelBuilder()
            body = builder.add_body(mass=1.0, inertia=np.eye(3))
            if method == "add_body":
                builder.add_body(**arguments)
            elif method.startswith("add_shape"):
                getattr(builder, method)(**{"body": body, **arguments})
            else:
                link = builder.add_link(mass=1.0, inertia=np.eye(3))
                joint = getattr(builder, method)(**{"parent": -1, "child": link, **arguments})
                builder.add_articulation([joint])
            return builder.finalize("cpu")

        return call

    body = {
        "mass": lambda: 1.0,
        "inertia": lambda: np.eye(3),
        "com": lambda: (0.0, 0.0, 0.0),
        "xform": lambda: None,
    }
    yield Target(
        "ModelBuilder.add_body",
        described("add_body"),
        body,
        {
            "mass": wrong.either(wrong.NOT_NEGATIVE, wrong.one_of("x", wrong.Stranger, [1.0, 2.0])),
            "inertia": wrong.either(
                wrong.one_of(-np.eye(3), np.full((3, 3), wrong.NAN), "x", np.zeros((2, 2)))
            ),
            "com": wrong.one_of((wrong.NAN, 0, 0), (0.0, 0.0), "xyz", (1e300, 0, 0)),
            "xform": wrong.POSE,
        },
    )
    sizes = {
        "add_shape_box": ("hx", "hy", "hz"),
        "add_shape_sphere": ("radius",),
        "add_shape_capsule": ("radius", "half_height"),
        "add_shape_cylinder": ("radius", "half_height"),
    }
    for method, names in sizes.items():
        size = wrong.either(wrong.one_of(-1.0, 0.0, wrong.NAN, wrong.INF, 1e300, "x", wrong.Stranger))
        yield Target(
            f"ModelBuilder.{method}",
            described(method),
            {name: lambda: 0.1 for name in names},
            {
                **dict.fromkeys(names, size),
                "body": wrong.one_of(7, -2, 2**40, "x", wrong.Stranger),
                "xform": wrong.POSE,
            },
        )
    for method in ("add_joint_revolute", "add_joint_prismatic"):
        yield Target(
            f"ModelBuilder.{method}",
            described(method),
            {"axis": lambda: (0.0, 1.0, 0.0)},
            {
                "axis": wrong.one_of((0, 0, 0), (wrong.NAN, 0, 1), "q", (1, 2), wrong.Stranger),
                "parent": wrong.one_of(99, -2, 2**40, "x", wrong.Stranger),
                "child": wrong.one_of(99, -1, 2**40, "x", wrong.Stranger),
                "parent_xform": wrong.POSE,
                "limit_lower": wrong.one_of(wrong.NAN, wrong.INF, "x"),
                "armature": wrong.either(wrong.one_of(-1.0, wrong.NAN, 1e300, "x")),
            },
        )

    def replicated(**arguments: Any) -> Any:
        builder, kind = ModelBuilder(), ModelBuilder()
        kind.add_body(mass=1.0, inertia=np.eye(3))
        builder.replicate(arguments.get("builder", kind), arguments["count"])
        return builder.finalize("cpu")

    yield Target(
        "ModelBuilder.replicate",
        replicated,
        {"count": lambda: 2},
        {"count": wrong.one_of(-1, 1.5, "x", wrong.NAN, wrong.Stranger, None),
         "builder": wrong.one_of("x", 3, wrong.Stranger, None)},
    )  # fmt: skip
    geom = '<geom type="box" size="0.1 0.1 0.1"/>'
    mjcf = f"<mujoco><worldbody><body><freejoint/>{geom}</body></worldbody></mujoco>"
    usda = (
        '#usda 1.0\n(\n metersPerUnit = 1\n upAxis = "Z"\n)\ndef Cube "a" (\n prepend apiSchemas = '
        '["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]\n)\n{\n double size = 0.2\n}\n'
    )
    for method, text in (("add_mjcf", mjcf), ("add_urdf", CARTPOLE), ("add_usd", usda)):

        def imported(source: Any, method: str = method) -> Any:
            builder = ModelBuilder()
            getattr(builder, method)(source)
            return builder.finalize("cpu")

        yield Target(
            f"ModelBuilder.{method}",
            imported,
            {"source": lambda text=text: text},
            {"source": wrong.either(wrong.one_of("/nowhere.xml", "", 3, None, wrong.Stranger))},
        )
        yield Target(
            f"ModelBuilder.{method} of a damaged text",
            imported,
            {"source": lambda text=text: text},
            {"source": wrong.damaged(text)},
            may_pass=frozenset({"source"}),
        )


def view_targets() -> Iterator[Target]:
    """Yield the calls of views and randomizers."""
    model = make_boxes(hinge=True)
    simulation = Simulation(model, dt=0.005, threads=1)
    view = ArticulationView(model, "*")
    state = simulation.state
    yield Target(
        "ArticulationView",
        lambda pattern, **options: ArticulationView(model, pattern, **options),
        {"pattern": lambda: "*"},
        {"pattern": wrong.one_of("nothing*", 3, None, [], wrong.Stranger, [3], 10**6),
         "include_links": wrong.one_of("nothing", 3.5, wrong.Stranger, ["zz"])},
    )  # fmt: skip
    right = tuple(view.get_dof_positions(state).shape)
    for method, source in (("set_dof_positions", state), ("set_dof_forces", simulation.control)):
        yield Target(
            f"ArticulationView.{method}",
            lambda values, mask=None, indices=None, method=method, source=source: getattr(view, method)(
                source, values, mask, indices=indices
            ),
            {"values": lambda: np.zeros(right, dtype=np.float32)},
            {
                "values": wrong.shaped(right, right[:1], (), (1,), right[1:], (1, *right[1:])),
                "mask": wrong.one_of("x", [True] * 9, 3.5, wrong.Stranger, lambda: wp.ones(9, dtype=wp.bool)),
                "indices": wrong.either(wrong.INDICES, wrong.one_of([9], [-1], "x", 3.5, wrong.Stranger)),
            },
            simulation=simulation,
        )
    yield Target(
        "ArticulationView.get_attribute",
        lambda name, source: view.get_attribute(name, source),
        {"name": lambda: "joint_q", "source": lambda: state},
        {"name": wrong.NAME, "source": wrong.one_of(None, 3, "x", wrong.Stranger)},
    )
    randomizer = Randomizer(simulation, [friction(Uniform(0.5, 1.0))], seed=0)
    for method in ("apply", "restore"):
        yield Target(
            f"Randomizer.{method}",
            getattr(randomizer, method),
            {"environments": lambda: [0]},
            {"environments": wrong.either(wrong.WORLDS, wrong.INDICES)},
            simulation=simulation,
        )
    yield Target(
        "Randomizer",
        lambda terms, seed: Randomizer(simulation, terms, seed=seed),
        {"terms": lambda: [friction(Uniform(0.5, 1.0))], "seed": lambda: 0},
        {"terms": wrong.one_of([3], "x", [wrong.Stranger()], 3,
                               lambda: [Property("body_label", Uniform(0.0, 1.0))],
                               lambda: [Property("no_such_array", Uniform(0.0, 1.0))]),
         "seed": wrong.one_of("x", wrong.Stranger, [1], 1.5)},
    )  # fmt: skip
    yield Target(
        "Uniform",
        Uniform,
        {"low": lambda: 0.0, "high": lambda: 1.0},
        {
            "low": wrong.one_of(2.0, wrong.NAN, "x", wrong.Stranger),
            "high": wrong.one_of(-1.0, wrong.NAN, "x"),
        },
    )


def dynamics_targets() -> Iterator[Target]:
    """Yield the queries of dynamics."""
    model, other = make_boxes(), make_boxes(1, box_count=3)
    state = wrong.either(wrong.NO_OBJECT, wrong.one_of(other.state, lambda: other))
    simulation = Simulation(model, dt=0.005, threads=1)
    for name in ("eval_jacobian", "eval_mass_matrix", "eval_momenta", "eval_world_momenta", "eval_loops"):
        yield Target(
            f"dynamics.{name}",
            lambda state, worlds=None, name=name: getattr(dynamics, name)(model, state, worlds=worlds),
            {"state": model.state, "worlds": lambda: None},
            {"state": state, "worlds": wrong.DEVICE_WORLDS},
            simulation=simulation,
        )
    array = wrong.one_of(None, "x", 3, wrong.Stranger, lambda: wp.zeros(1, dtype=float), lambda: np.zeros(21))
    for name in ("eval_fk", "eval_ik"):

        def call(state: Any, joint_q: Any, joint_qd: Any, name: str = name, **chosen: Any) -> Any:
            arguments = (joint_q, joint_qd, state) if name == "eval_fk" else (state, joint_q, joint_qd)
            return getattr(dynamics, name)(model, *arguments, **chosen)

        yield Target(
            f"dynamics.{name}",
            call,
            {
                "state": model.state,
                "joint_q": lambda: wp.clone(model.joint_q),
                "joint_qd": lambda: wp.clone(model.joint_qd),
            },
            {
                "state": state,
                "joint_q": array,
                "joint_qd": array,
                "mask": wrong.one_of(
                    [True], "x", lambda: wp.ones(9, dtype=wp.bool), lambda: np.ones(3, dtype=bool)
                ),
                "indices": wrong.either(
                    wrong.INDICES, wrong.one_of([0], "x", lambda: wp.zeros(1, dtype=float))
                ),
            },
            simulation=simulation,
        )


def variant_targets() -> Iterator[Target]:
    """Yield the calls of a simulation with variants."""
    from pluriverse.entity import EntityCfg, VariantEntityCfg
    from pluriverse.scene import SceneCfg
    from pluriverse.variants import make_scene
    from tests.variants.objects import ball_builder, box_builder

    entity = VariantEntityCfg(
        variants={"box": box_builder, "ball": ball_builder},
        init_state=EntityCfg.InitialStateCfg(pos=(0.0, 0.0, 0.2)),
    )
    scene = make_scene(SceneCfg(num_envs=4, entities={"object": entity}, reassignable=True), device="cpu")
    simulation = scene.simulation(dt=0.005)
    yield Target(
        "VariantSimulation.reassign",
        simulation.reassign,
        {"environments": lambda: [0]},
        {
            "environments": wrong.either(wrong.WORLDS, wrong.INDICES),
            "variants": wrong.one_of(
                {"nothing": [0, 0, 0, 0]}, {"object": [7, 7, 7, 7]}, {"object": [0]}, {"object": "x"}, 3, "x",
                {"object": [0.5, 0.5, 0.5, 0.5]}, {"object": [-1, -1, -1, -1]}, wrong.Stranger,
            ),
        },
        simulation=simulation,
    )  # fmt: skip
    yield Target(
        "VariantSimulation.reset",
        simulation.reset,
        {"worlds": lambda: [0]},
        {"worlds": wrong.either(wrong.WORLDS, wrong.INDICES)},
        simulation=simulation,
    )
    yield Target(
        "SceneCfg",
        lambda **arguments: make_scene(
            SceneCfg(**{"num_envs": 2, "entities": {"o": entity}, **arguments}), device="cpu"
        ),
        {"num_envs": lambda: 2},
        {
            "num_envs": wrong.COUNT,
            "entities": wrong.one_of("x", 3, {"o": 3}, {3: entity}, wrong.Stranger, {"": entity}),
        },
    )


def actor_targets(folder: Path) -> Iterator[Target]:
    """Yield the tensor calls of the actor API."""
    gym = gymapi.acquire_gym()
    (folder / "cartpole.urdf").write_text(CARTPOLE)
    sim = make_sim()
    asset = gym.load_asset(sim, str(folder), "cartpole.urdf", undamped(fix_base_link=True))
    for number in range(3):
        gym.create_actor(add_env(sim), asset, at(z=2.0), f"cart_{number}", number, 1)
    gym.prepare_sim(sim)
    dof_count, actor_count = gym.get_sim_dof_count(sim), gym.get_sim_actor_count(sim)
    rows = {
        "set_dof_state_tensor": (dof_count, 2),
        "set_dof_position_target_tensor": (dof_count,),
        "set_dof_velocity_target_tensor": (dof_count,),
        "set_dof_actuation_force_tensor": (dof_count,),
        "set_actor_root_state_tensor": (actor_count, 13),
    }
    for name, shape in rows.items():
        values = wrong.shaped(shape, (shape[0], 1), (int(np.prod(shape)),), (shape[0],))
        yield Target(
            f"gym.{name}",
            lambda values, name=name: getattr(gym, name)(sim, values),
            {"values": lambda shape=shape: np.zeros(shape, dtype=np.float32)},
            {"values": values},
        )
        yield Target(
            f"gym.{name}_indexed",
            lambda values, indices, count, name=name: getattr(gym, f"{name}_indexed")(
                sim, values, indices, count
            ),
            {
                "values": lambda shape=shape: wp.zeros(shape, dtype=float, device="cpu"),
                "indices": lambda: wp.array([0], dtype=int, device="cpu"),
                "count": lambda: 1,
            },
            {
                "values": values,
                "indices": wrong.either(
                    wrong.INDEX,
                    wrong.one_of("x", 3.5, wrong.Stranger, lambda: wp.zeros((2, 2), dtype=float)),
                ),
                "count": wrong.one_of(-1, 99, 1.5, "x", wrong.Stranger, 2**40),
            },
        )


def command_targets(folder: Path) -> Iterator[Target]:
    """Yield the command line, called in this process."""
    from pluriverse.cli.app import main

    (folder / "damaged.yaml").write_text("schema_version: 1\nbodies: [{id: a, mass: 1e39}]\n")
    (folder / "empty.yaml").write_text("")

    def call(command: Any, scene: Any, option: Any) -> None:
        before, sys.argv = sys.argv, ["pluriverse", str(command), str(scene), *map(str, option)]
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                main()
        except SystemExit as error:
            if error.code not in (0, None):
                raise ValueError(f"the command ended with {error.code}") from error
        finally:
            sys.argv = before

    good = Path(pv.__file__).parent / "scenes" / "pile.yaml"
    option = wrong.one_of(
        ["--steps", "-1"], ["--worlds", "0"], ["--worlds", "many"], ["--no-such-option"],
        ["--solver", "magic"], ["--threads", "-3"], ["--dt", "nan"], ["surplus"],
        ["--record", "/nowhere/at/all.npz", "--steps", "1"],
    )  # fmt: skip
    yield Target(
        "pluriverse run",
        lambda **arguments: call("run", **arguments),
        {"scene": lambda: good, "option": lambda: ["--steps", "1"]},
        {
            "scene": wrong.one_of(
                "/nowhere.yaml", folder, folder / "damaged.yaml", folder / "empty.yaml", "a\1b", ""
            ),
            "option": option,
        },
    )
    yield Target(
        "pluriverse check",
        lambda scene: call("check", scene, []),
        {"scene": lambda: good},
        {"scene": wrong.one_of("/nowhere.yaml", folder, folder / "damaged.yaml", folder / "empty.yaml")},
    )
    yield Target(
        "pluriverse",
        lambda command: call(command, good, []),
        {"command": lambda: "check"},
        {"command": wrong.one_of("fly", "--nothing", "RUN", "check;ls", "3")},
    )
