"""Balls on generated terrain, as a triangle mesh or as a height field."""

import common
import numpy as np
from common import ASSETS, gym

from pluriverse import gymapi
from pluriverse.terrain_utils import (
    SubTerrain,
    convert_heightfield_to_trimesh,
    pyramid_stairs_terrain,
    random_uniform_terrain,
    wave_terrain,
)

SCALE, STEP = 0.25, 0.005  # m: distance of samples, unit of height
WIDTH = 16


def make_field() -> np.ndarray:
    """Return the heights of three patches in a row."""
    np.random.seed(1)  # noqa: NPY002
    patches = [SubTerrain("patch", WIDTH, WIDTH, STEP, SCALE) for _ in range(3)]
    random_uniform_terrain(patches[0], -0.1, 0.1, 0.02, 0.5)
    pyramid_stairs_terrain(patches[1], 0.5, 0.1)
    wave_terrain(patches[2], 2, 0.4)
    return np.concatenate([patch.height_field_raw for patch in patches])


def main(words: list[str] | None = None) -> None:
    """Drop balls and check that none fell through."""
    kind = {"name": "--heightfield", "action": "store_true", "help": "use a height field"}
    args = common.parse("terrain", 90, words, kind)
    sim = common.make_sim(args, ground=False)
    field = make_field()
    if args.heightfield:
        params = gymapi.HeightFieldParams()
        params.nbRows, params.nbColumns = field.shape
        params.row_scale = params.column_scale = SCALE
        params.vertical_scale = STEP
        params.transform.p = gymapi.Vec3(*(0.5 * SCALE * (size - 1) for size in field.shape), 0.0)
        gym.add_heightfield(sim, field.T.flatten(), params)
    else:
        vertices, triangles = convert_heightfield_to_trimesh(field, SCALE, STEP, 3.0)
        mesh = gymapi.TriangleMeshParams()
        mesh.nb_vertices, mesh.nb_triangles = len(vertices), len(triangles)
        gym.add_triangle_mesh(sim, vertices.flatten(), triangles.flatten(), mesh)
    ball = gym.load_asset(sim, ASSETS, "ball.urdf", gymapi.AssetOptions())
    env = next(iter(common.make_envs(sim, 1)))
    rng = np.random.default_rng(0)
    for x, y in rng.uniform(0.6, [SCALE * size - 0.9 for size in field.shape], (24, 2)):
        gym.create_actor(env, ball, common.at(x, y, 1.0), None, 0, 0)
    common.run(sim, args.frames)
    places = gym.get_sim_rigid_body_states(sim, gymapi.STATE_POS)["pose"]["p"]
    cells = [
        np.clip((places[axis] / SCALE).astype(int), 0, size - 2)
        for axis, size in zip("xy", field.shape, strict=True)
    ]
    ground = STEP * np.minimum(field[cells[0], cells[1]], field[cells[0] + 1, cells[1] + 1])
    inside = (places["x"] > 0) & (places["x"] < SCALE * (field.shape[0] - 1))
    inside &= (places["y"] > 0) & (places["y"] < SCALE * (field.shape[1] - 1))
    print("balls below the ground:", int((places["z"] < ground - 0.1)[inside].sum()), "of", int(inside.sum()))


if __name__ == "__main__":
    main()
