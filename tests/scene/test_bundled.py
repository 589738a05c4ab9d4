"""The scenes and robots bundled with the package."""

import mujoco
import numpy as np
import pytest

from pluriverse.scene import bundled_scenes, load_scene

SCENES = bundled_scenes()
ROBOTS = next(iter(SCENES.values())).parent / "robots"

# (kind of world, mass [kg], degrees of freedom) of each bundled scene
CONTENT = {
    "arm": [("arm", 16.38 + 0.25, 14)],
    "cartpole": [("cartpole", 2.5, 2)],
    "humanoid": [("humanoid", 50.0, 27)],
    "pile": [("pile", 8 * 3.2, 48)],
    "pile_64": [("pile_64", 64 * 3.2, 384)],
    "quadruped": [("quadruped", 12.0, 18)],
    "rough": [("rough", 12.0, 18)],
    "mixed": [
        ("quadruped", 12.0, 18),
        ("quadruped_on_the_moon", 12.0, 18),
        ("humanoid", 50.0, 27),
        ("arm", 16.63, 14),
        ("pile", 25.6, 48),
    ],
}


def test_every_shipped_scene_is_listed_here():
    assert set(SCENES) == set(CONTENT)


@pytest.mark.parametrize("name", CONTENT)
def test_bundled_scenes_hold_what_they_say(name):
    """Bundled scenes load in strict mode; masses and degrees of freedom are those of the list."""
    scene = load_scene(name, device="cpu")
    model = scene.model
    assert scene.unsupported_features == ()
    assert scene.kind_names == tuple(kind for kind, _, _ in CONTENT[name])
    mass, body_start = model.body_mass.numpy(), model.body_world_start.numpy()
    dof_start = model.joint_dof_world_start.numpy()
    for kind, (_, kind_mass, dof_count) in enumerate(CONTENT[name]):
        world = scene.kind_of_world.index(kind)
        assert mass[body_start[world] : body_start[world + 1]].sum() == pytest.approx(kind_mass, rel=1e-6)
        assert dof_start[world + 1] - dof_start[world] == dof_count
    with SCENES[name].open(encoding="utf-8") as file:
        assert file.readline().startswith("# ")  # what `pluriverse scenes` shows


def inertia_matrix(model, body):
    """Return the inertia of a body of MuJoCo [kg·m²] along the body's axes."""
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.body_iquat[body])
    turn = turn.reshape(3, 3)
    return turn @ np.diag(model.body_inertia[body]) @ turn.T


@pytest.mark.parametrize("name", ["heron.urdf", "cartpole.urdf"])
def test_inertias_of_the_urdf_robots_are_those_of_their_shapes(name):
    """MuJoCo computes mass properties from the collision shapes, given the masses; the files say the same."""
    path = ROBOTS / name
    given = mujoco.MjModel.from_xml_path(str(path))
    text = path.read_text(encoding="utf-8")
    computed = mujoco.MjSpec.from_string(text)
    computed.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    computed = computed.compile()
    assert given.nbody == computed.nbody > 1
    for body in range(1, given.nbody):
        density = given.body_mass[body] / computed.body_mass[body]
        np.testing.assert_allclose(given.body_ipos[body], computed.body_ipos[body], atol=1e-9)
        # The file has six significant digits.
        expected = density * inertia_matrix(computed, body)
        np.testing.assert_allclose(inertia_matrix(given, body), expected, atol=1e-5 * expected.max())


@pytest.mark.parametrize("name", ["puli.xml", "ada.xml"])
def test_masses_of_the_mjcf_robots_are_of_plausible_density(name):
    """Robots are made of metal, plastic and air: between 150 and 9000 kg/m³ on the whole of each link."""
    spec = mujoco.MjSpec.from_file(str(ROBOTS / name))
    given = spec.compile()
    for geom in spec.geoms:
        geom.mass = np.nan
        geom.density = 1.0
    volume = spec.compile().body_mass
    density = given.body_mass[1:] / volume[1:]
    assert density.min() > 150.0
    assert density.max() < 9000.0


STANDING_TIME = 10.0  # s


@pytest.mark.parametrize(
    ("name", "tilt_max", "sag_max"), [("quadruped", 0.02, 0.02), ("humanoid", 0.1, 0.02)]
)
def test_the_robots_stand(name, tilt_max, sag_max):
    """Drives and stiction hold the robots up for ten seconds; by then they have come to rest.

    The bounds on tilt [rad] and sag [m] follow from the stiffness of the drives: a joint gives way by torque
    over stiffness, some hundredths of a radian here.
    """
    scene = load_scene(name, device="cpu")
    start = scene.state.joint_q.numpy().copy()
    simulation = scene.simulation(threads=1, strict=True)
    simulation.step(round(0.8 * STANDING_TIME / simulation.dt))
    before = simulation.state.joint_q.numpy().copy()
    simulation.step(round(0.2 * STANDING_TIME / simulation.dt))
    after, report = simulation.state.joint_q.numpy(), simulation.report()
    assert report.frozen_worlds == ()
    assert abs(after[2] - start[2]) < sag_max
    assert 2.0 * np.linalg.norm(after[3:6]) < tilt_max
    # Stiction is regularized, so feet that push sideways creep, by well under a millimetre a second.
    assert np.abs(after[:3] - before[:3]).max() < 1e-3
    assert np.abs(after[7:] - before[7:]).max() < 5e-3
    # At rest the ground carries the weight.
    force = simulation.solver.body_contact_force(simulation.contacts).numpy()[:, 2].sum()
    assert force == pytest.approx(9.81 * scene.model.body_mass.numpy().sum(), rel=1e-3)


def test_the_quadrupeds_stand_on_rough_ground():
    """Dropped from 6 cm or less, all nine land on their feet, come to rest, and the ground carries them."""
    scene = load_scene("rough", device="cpu")
    with scene.simulation(threads=1, strict=True) as simulation:
        simulation.step(round(3.0 / simulation.dt))
        q = simulation.state.joint_q.numpy().reshape(9, -1)
        speed = np.abs(simulation.state.joint_qd.numpy()).max()
        force = simulation.solver.body_contact_force(simulation.contacts).numpy()[:, 2]
    # Each world stands at its own place, so on ground of its own: heights and tilts differ.
    assert q[:, 2].std() > 0.002
    # The feet are 0.4 m apart and more, on heights within 4 cm of zero.
    assert 2.0 * np.linalg.norm(q[:, 3:6], axis=1).max() < 0.08 / 0.4
    assert speed < 0.01
    np.testing.assert_allclose(force.reshape(9, -1).sum(axis=1), 12.0 * 9.81, rtol=1e-3)


def test_the_arm_swings_the_cube_round_and_holds_it():
    scene = load_scene("arm", device="cpu")
    model = scene.model
    cube = model.body_label.index("cube")
    radius, height = 0.46005, 0.41
    simulation = scene.simulation(threads=1, strict=True)
    simulation.step(round(5.0 / simulation.dt))
    position = simulation.state.body_q.numpy()[cube, :3]
    # The grip is friction only, and the joints sag a little: the cube is where the hand is to a centimetre.
    np.testing.assert_allclose(position, [radius * np.cos(0.8), radius * np.sin(0.8), height], atol=0.015)
    # Held by the fingers alone: no contact with the ground, and the forces on the cube carry its weight.
    force = simulation.solver.body_contact_force(simulation.contacts).numpy()[cube]
    assert force[2] == pytest.approx(0.25 * 9.81, rel=0.02)


@pytest.mark.parametrize("name", ["pile", "pile_64"])
def test_the_piles_come_to_rest_without_sinking_in(name):
    scene = load_scene(name, device="cpu")
    count = scene.model.body_count
    simulation = scene.simulation(threads=1, strict=True)
    simulation.step(round(3.0 / simulation.dt))
    heights = np.sort(simulation.state.body_q.numpy()[:, 2])
    force = simulation.solver.body_contact_force(simulation.contacts).numpy()[:, 2].sum()
    assert force == pytest.approx(9.81 * 3.2 * count, rel=0.02)
    # No box is lower than half its height, up to a penetration of weight over stiffness: with all the boxes
    # above on one edge of two contacts, layers * 3.2 kg * g / (2 * 5e4 N/m) < 2 mm.
    assert heights[0] > 0.1 - 2e-3
    assert np.abs(simulation.state.body_qd.numpy()).max() < 0.02


def test_the_pole_falls_and_keeps_its_energy():
    """Damping takes energy, and nothing else does: it falls steadily, by what the joints dissipate."""
    scene = load_scene("cartpole", device="cpu")
    model = scene.model
    simulation = scene.simulation(threads=1, dt=0.0005)
    mass, com = model.body_mass.numpy(), model.body_com.numpy()
    pole, cart = model.body_label.index("cartpole/pole"), model.body_label.index("cartpole/cart")

    def energy():
        q, qd = simulation.state.joint_q.numpy(), simulation.state.joint_qd.numpy()
        length = com[pole, 2]
        inertia = model.body_inertia.numpy()[pole, 0, 0]
        vy = qd[0] - length * np.cos(q[1]) * qd[1]
        vz = -length * np.sin(q[1]) * qd[1]
        kinetic = (
            0.5 * mass[cart] * qd[0] ** 2 + 0.5 * mass[pole] * (vy**2 + vz**2) + 0.5 * inertia * qd[1] ** 2
        )
        return float(kinetic + mass[pole] * 9.81 * length * np.cos(q[1]))

    energies = [energy()]
    dissipated = 0.0
    for _ in range(400):
        simulation.step(5)
        velocity = simulation.state.joint_qd.numpy()
        dissipated += 5 * simulation.dt * float(model.joint_damping.numpy() @ velocity**2)
        energies.append(energy())
    # First order in dt: a relative error of rate * dt * time, with rates of up to 10/s over one second.
    assert energies[0] - energies[-1] == pytest.approx(dissipated, abs=0.01 * abs(energies[0]))


def test_worlds_of_the_mixed_scene_move_as_they_do_alone():
    """A quadruped on the Earth among humanoids, arms and piles gives the same bits as in its own scene."""
    mixed, alone = load_scene("mixed", device="cpu"), load_scene("quadruped", device="cpu")
    results = []
    for scene in (mixed, alone):
        simulation = scene.simulation(threads=1)
        simulation.step(50)
        results.append(simulation.state.joint_q.numpy()[:19])
    np.testing.assert_array_equal(*results)
