"""Contacts that will not act go behind the others."""

import numpy as np
import pytest
import warp as wp

from pluriverse.collision.contact_output import ContactOutput
from pluriverse.collision.idle_contacts import SPEED_SHARE_IDLE, partition_world_contacts
from pluriverse.collision.shape_state import ANY_SPEED, ShapeModel, ShapePlace, ShapeState

SHAPES, BODIES, SLOTS = 12, 5, 32
USUAL, USUAL_MAX, SLIDING_SPEED = 0.05, 0.5, 0.01


def unit(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return random unit vectors."""
    vectors = rng.normal(size=shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return a vector turned by a quaternion, xyzw."""
    return v + 2.0 * np.cross(q[:3], np.cross(q[:3], v) + q[3] * v)


class Problem:
    """Shapes that move, and contacts between them in the slots of one world behind another's."""

    def __init__(self, count: int, *, with_stiffness: bool = False):
        rng = np.random.default_rng(count)
        self.count, self.start = count, 3
        place = np.zeros(SHAPES, dtype=ShapePlace.numpy_dtype())
        for name in ("origin", "middle", "velocity", "spin"):
            place[name] = rng.normal(scale=0.3, size=(SHAPES, 3))
        for name in ("radius", "lead", "change", "friction", "spin_length"):
            place[name] = rng.uniform(0.005, 0.1, SHAPES)
        place["friction"] *= 10.0
        place["change"][0] = ANY_SPEED
        self.place, self.body = place, np.array([-1, *rng.integers(-1, BODIES, SHAPES - 1)])
        self.body_q = np.hstack([rng.normal(size=(BODIES, 3)), unit(rng, BODIES, 4)]).astype(np.float32)
        # Some contacts of a pair follow each other.
        self.shapes = np.repeat(rng.integers(0, SHAPES, (2, SLOTS)), rng.integers(1, 5, SLOTS), axis=1)[
            :, :SLOTS
        ]
        self.points = rng.normal(scale=0.1, size=(2, SLOTS, 3)).astype(np.float32)
        self.normal = unit(rng, SLOTS, 3).astype(np.float32)
        self.separation = rng.uniform(-0.01, 0.08, SLOTS).astype(np.float32)
        self.stiffness = np.where(rng.random(SLOTS) < 0.3, 1e3, 0.0) if with_stiffness else None

    def is_idle(self, slot: int, is_repeated: int) -> bool:
        """Return by the definition whether a contact is idle."""
        distance = self.separation[slot]
        if distance <= 0.0 or (self.stiffness is not None and self.stiffness[slot] > 0.0):
            return False
        a, b = (self.place[self.shapes[side, slot]] for side in (0, 1))
        change = float(a["change"]) + float(b["change"])
        if not is_repeated and change < ANY_SPEED:
            norm = np.linalg.norm
            speed = sum(norm(c["velocity"]) + norm(c["spin"]) * c["radius"] for c in (a, b))
            change = min(change, USUAL + SPEED_SHARE_IDLE * speed, USUAL_MAX)
        arms = []
        for side, some in enumerate((a, b)):
            body, point = self.body[self.shapes[side, slot]], self.points[side, slot].astype(float)
            arm = point - some["origin"] if body < 0 else rotate(self.body_q[body, 3:].astype(float), point)
            arms.append(arm - some["middle"])
        velocity = b["velocity"] + np.cross(b["spin"], arms[1]) - a["velocity"] - np.cross(a["spin"], arms[0])
        normal = self.normal[slot].astype(float)
        friction, lead = (max(float(a[name]), float(b[name])) for name in ("friction", "lead"))
        parting = normal @ velocity
        sliding = np.linalg.norm(velocity - parting * normal)
        turning = np.linalg.norm(b["spin"] - a["spin"]) * max(a["spin_length"], b["spin_length"])
        between = max(np.linalg.norm(a["spin"]), np.linalg.norm(b["spin"])) * distance
        opening = max(friction * (sliding + between), SLIDING_SPEED)
        acting = lead / np.sqrt(1.0 + friction**2) * (opening + turning - parting) + lead * change
        assert abs(distance - acting) > 1e-6 * max(distance, abs(acting)), "rounding would decide"
        return bool(distance > acting)

    def partition(self, is_repeated: int) -> tuple[np.ndarray, int, int]:
        """Return the normals of the slots, and how many contacts are kept and idle."""

        def array(values, dtype):
            return wp.array(values, dtype=dtype, device="cpu")

        model, state, output = ShapeModel(), ShapeState(), ContactOutput()
        model.shape_body = array(self.body, int)
        state.place = array(self.place, ShapePlace)
        output.start = array([self.start, SLOTS], int)
        output.count, output.found = array([self.count], int), array([self.count], int)
        output.shape0, output.shape1 = (array(some, int) for some in self.shapes)
        output.point0, output.point1 = (array(some, wp.vec3) for some in self.points)
        output.normal, output.separation = array(self.normal, wp.vec3), array(self.separation, float)
        output.margin0, output.margin1 = (array(np.zeros(SLOTS), float) for _ in range(2))
        stiffness = None if self.stiffness is None else array(self.stiffness, float)
        idle_count = array([-1], int)
        inputs = [array([0], int), 1, model, state, array(self.body_q, wp.transform)]
        inputs += [USUAL, USUAL_MAX, SLIDING_SPEED, is_repeated, int(stiffness is not None)]
        outputs = [output, stiffness, idle_count]
        wp.launch(partition_world_contacts, dim=(1, 1), inputs=inputs, outputs=outputs, device="cpu")
        kept = int(output.count.numpy()[0])
        assert int(output.found.numpy()[0]) == kept
        if stiffness is not None:  # goes with its contact
            order = [int(np.flatnonzero((self.normal == n).all(axis=1))[0]) for n in output.normal.numpy()]
            np.testing.assert_array_equal(stiffness.numpy(), self.stiffness[order].astype(np.float32))
        return output.normal.numpy(), kept, int(idle_count.numpy()[0])


@pytest.mark.parametrize("is_repeated", [0, 1])
@pytest.mark.parametrize(
    ("count", "with_stiffness"), [(0, False), (1, False), (8, False), (27, False), (29, True)]
)
def test_contacts_that_do_not_act_go_behind_the_others(count, with_stiffness, is_repeated):
    """Those that may act keep their order, and other slots of the world and of others stay as they were."""
    problem = Problem(count, with_stiffness=with_stiffness)
    slots = range(problem.start, problem.start + count)
    idle = [slot for slot in slots if problem.is_idle(slot, is_repeated)]
    kept = [slot for slot in slots if slot not in idle]
    if count > 8:
        assert len(idle) > 2
        assert len(kept) > 2
    normal, kept_count, idle_count = problem.partition(is_repeated)
    assert (kept_count, idle_count) == (len(kept), len(idle))
    np.testing.assert_array_equal(normal[problem.start :][: len(kept)], problem.normal[kept])
    behind = normal[problem.start + len(kept) : problem.start + count]
    assert sorted(behind.tolist()) == sorted(problem.normal[idle].tolist())
    untouched = [*range(problem.start), *range(problem.start + count, SLOTS)]
    np.testing.assert_array_equal(normal[untouched], problem.normal[untouched])
