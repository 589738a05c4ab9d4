"""Terrain in scenes: as ground of all worlds, and as a shape of one."""

import json

import numpy as np
import pytest

from pluriverse.scene import SapSceneLoaderError, load_scene
from pluriverse.types import GeoType

from .scene_files import load_text, write_scene

BALL = """
simulation: {dt: 0.005}
builder: {defaults: {shape: {ke: 1e6}}}
bodies: [{id: ball, transform: {p: [0.5, 0.4, 1.5]}, shapes: [{type: sphere, radius: 0.2}]}]
joints: [{id: free, type: free, child: ball}]
"""


def heights_of(model):
    """Return the heights [m] of the height field of a model, and its half extents."""
    shape = model.shape_type.numpy().tolist().index(GeoType.HFIELD)
    field = model.shape_source[shape]
    return field.heights, (field.hx, field.hy)


@pytest.mark.parametrize(
    ("terrain", "check"),
    [
        ("{type: flat, size: [4, 6], height: 0.25}", lambda z: (z == 0.25).all()),
        (
            "{type: random_uniform, size: [4, 6], min_height: 0, max_height: 0.3, step: 0.1, seed: 5}",
            lambda z: 0.15 < np.ptp(z) <= 0.3,
        ),
        ("{type: sloped, size: [4, 6], slope: 0.5, platform: 1}", lambda z: abs(z.max() - 0.75) < 1e-6),
        (
            "{type: stairs, size: [4, 6], step_width: 0.5, step_height: -0.2, platform: 1}",
            lambda z: len(np.unique(np.round(z, 6))) == 4 and abs(z.min() + 0.6) < 1e-6,
        ),
        ("{type: wave, size: [4, 6], amplitude: 0.2, wave_count: 2}", lambda z: abs(np.ptp(z) - 0.4) < 0.02),
        (
            "{type: discrete_obstacles, size: [4, 6], height: 0.3, count: 9, seed: 2, resolution: 0.1}",
            lambda z: np.ptp(z) > 0 and np.allclose(z / 0.15, np.round(z / 0.15), atol=1e-6),
        ),
        ("{type: heights, size: [4, 6], heights: [[0, 1, 0], [0, 2, pi / 2]]}", lambda z: z.shape == (2, 3)),
        (
            "{type: heights, size: [4, 6], heights: [[0, 10], [5, 10]], min_z: 1, max_z: 2}",
            lambda z: (np.unique(z) == [1, 1.5, 2]).all(),
        ),
    ],
)
def test_terrain_takes_the_place_of_the_plane(tmp_path, terrain, check):
    model = load_text(tmp_path, BALL + f"ground: {{terrain: {terrain}, height: -1, label: hills}}").model
    assert model.shape_type.numpy().tolist() == [GeoType.SPHERE, GeoType.HFIELD]
    assert model.shape_label[1] == "hills"
    heights, extent = heights_of(model)
    assert extent == (2.0, 3.0)
    assert check(heights)
    np.testing.assert_allclose(model.shape_transform.numpy()[1, :3], [0, 0, -1])
    assert model.shape_world.numpy()[1] == -1


@pytest.mark.parametrize("suffix", [".npy", ".csv"])
def test_heights_from_a_file(tmp_path, suffix):
    data = np.array([[0.0, 0.5, 1.0], [0.25, 0.5, -1.0]])
    if suffix == ".npy":
        np.save(tmp_path / "hills.npy", data)
    else:
        np.savetxt(tmp_path / "hills.csv", data, delimiter=",")
    text = BALL + f"ground: {{terrain: {{type: heights, size: [1, 1], path: hills{suffix}}}}}"
    np.testing.assert_allclose(heights_of(load_text(tmp_path, text).model)[0], data)


def test_heights_that_git_keeps_elsewhere_say_how_to_fetch_them(tmp_path):
    (tmp_path / "hills.csv").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n")
    text = BALL + "ground: {terrain: {type: heights, size: [1, 1], path: hills.csv}}"
    with pytest.raises(SapSceneLoaderError, match=r"hills\.csv.*`git lfs pull`"):
        load_text(tmp_path, text)


def test_a_ball_comes_to_rest_on_the_step_that_it_fell_on(tmp_path):
    """At the height of the step plus its radius; terrain is shared by all worlds."""
    text = BALL + "ground: {terrain: {type: flat, size: [4, 4], height: 0.3}, height: 0.2}\n"
    scene = load_text(tmp_path, text, num_worlds=2, spacing=(0, 0, 0))
    simulation = scene.simulation(threads=1)
    simulation.step(300)
    np.testing.assert_allclose(simulation.state.body_q.numpy()[:, 2], [0.7, 0.7], atol=1e-3)


def test_terrain_of_one_kind_of_world(tmp_path):
    """Added as a shape of the world; the ball beside it falls on."""
    hills = (
        "post_build: [{op: add_shape, type: heightfield, terrain: {type: flat, size: [4, 4]},"
        " transform: {p: [0, 0, 0.5]}}]"
    )
    write_scene(tmp_path, BALL + "ground: false\n" + hills, "hills.yaml")
    write_scene(tmp_path, BALL + "ground: false\n", "void.yaml")
    outer = BALL.split("bodies:")[0] + "ground: false\nreplicate: {spacing: [0, 0, 0]}\n"
    scene = load_text(tmp_path, outer + "worlds: [{scene: hills.yaml}, {scene: void.yaml}]")
    simulation = scene.simulation(threads=1)
    simulation.step(200)
    z = simulation.state.body_q.numpy()[:, 2]
    assert abs(z[0] - 0.7) < 1e-3
    assert z[1] < 0.0


WRONG = {
    "unknown type": ("{type: stair, size: [1, 1]}", "there is no type 'stair'; did you mean stairs"),
    "no type": ("{size: [1, 1]}", "ground.terrain: the required key 'type'"),
    "no size": ("{type: flat}", "ground.terrain.size: this required key is missing"),
    "flat size": ("{type: flat, size: [0, 1]}", r"ground.terrain.size: \[0, 1\] is no extent"),
    "size of three": ("{type: flat, size: [1, 1, 1]}", "is not a list of 2 numbers"),
    "key of another": ("{type: wave, size: [1, 1], seed: 1}", "terrain.seed: unknown key 'seed'"),
    "memory": (
        "{type: wave, size: [1e6, 1e6], resolution: 1e-3}",
        r"1e\+18 points, but 4,000,000 are allowed; make the resolution coarser",
    ),
    "too many obstacles": (
        "{type: discrete_obstacles, size: [9, 9], count: 1000000000}",
        "terrain.count: 1,000,000,000 is out of range; it must be at most 100,000",
    ),
    "seed below zero": (
        "{type: random_uniform, size: [9, 9], seed: -1}",
        r"ground.terrain.seed: -1 is out of range",
    ),
    "no heights": ("{type: heights, size: [1, 1]}", "give either 'heights' or 'path'"),
    "ragged heights": (
        "{type: heights, size: [1, 1], heights: [[1, 2], [3]]}",
        "rows have different lengths",
    ),
    "one row": ("{type: heights, size: [1, 1], heights: [[1, 2]]}", "the list needs at least 2"),
    "missing file": ("{type: heights, size: [1, 1], path: none.npy}", "there is no file of heights"),
    "file elsewhere": ("{type: heights, size: [1, 1], path: /etc/passwd}", "outside of the folders"),
    "file of objects": ("{type: heights, size: [1, 1], path: objects.npy}", "terrain.path: .*"),
    "file that promises more": ("{type: heights, size: [1, 1], path: liar.npy}", "terrain.path: .*"),
    "file of another kind": ("{type: heights, size: [1, 1], path: motion.json}", "end in .npy or .csv"),
    "half of the range": (
        "{type: heights, size: [1, 1], heights: [[1, 2], [1, 2]], min_z: 0}",
        "give both 'min_z' and 'max_z'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_place_value_and_remedy(tmp_path, name):
    terrain, message = WRONG[name]
    np.save(tmp_path / "objects.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    with (tmp_path / "liar.npy").open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
        np.lib.format.write_array_header_1_0(file, header)
    (tmp_path / "motion.json").write_text(json.dumps([1]))
    with pytest.raises(SapSceneLoaderError, match=message) as caught:
        load_scene(write_scene(tmp_path, BALL + f"ground:\n  terrain: {terrain}"), device="cpu")
    assert "scene.yaml:" in str(caught.value)
