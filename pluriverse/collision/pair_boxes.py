"""Pairs in lanes: leaving out near pairs whose shapes are too far apart, by boxes in axes of the shapes.

Reads   `ShapeState.place` of the shapes of near pairs
Writes  `PairTable.near`: the bits of pairs that surely have no contact are cleared

The broad phase compares boxes along world axes that hold what each shape may move by itself. Of links that
move together most such boxes overlap. Here the distance of two shapes is bounded by boxes in their own axes,
or by cylinders if they are round, and compared with how far their relative motion lets them come. That takes
a few hundred operations, which eight pairs do together; a pair with a contact needs all of its collider
anyway.
"""

from string import Template

import warp as wp

from pluriverse.collision.pair_table import Collider
from pluriverse.collision.shape_pair import BOX_ROUNDING, LEAST_SHARE
from pluriverse.collision.shape_state import ANY_SPEED, ShapePlace, place_fields
from pluriverse.math.bit_sets import LOWEST_BIT
from pluriverse.math.lane_records import lane_records

# Fewer near pairs than this are left to their colliders, which need less time for them than all lanes take.
LEAST_PAIRS = wp.constant(3)
# Mostly no more are near. Where vector units are 256 bits wide, sixteen lanes take twice as long.
LANE_COUNT = 8
# Half spaces have no boxes. They come first.
FIRST_WITH_BOXES = wp.constant(int(Collider.HALF_SPACE) + 1)

_VECTORS = """
    struct vec {
        float x, y, z;
        vec operator+(const vec& v) const { return {x + v.x, y + v.y, z + v.z}; }
        vec operator-(const vec& v) const { return {x - v.x, y - v.y, z - v.z}; }
        vec cross(const vec& v) const { return {y * v.z - z * v.y, z * v.x - x * v.z, x * v.y - y * v.x}; }
        float length() const { return wp::sqrt(x * x + y * y + z * z); }
    };
    struct lesser { static inline float of(float a, float b) { return a < b ? a : b; } };
    struct larger { static inline float of(float a, float b) { return a > b ? a : b; } };
    // A box, or an elliptic cylinder that holds the shape.
    struct bounding {
        float x, y, z, corner;
        // An octagon holds the ellipse: sqrt(u^2 + v^2) is at most the larger, and sqrt(2) - 1 of the other.
        bounding(vec half)
            : x(half.x), y(wp::abs(half.y)), z(half.z), corner(half.y < 0.0f ? 0.41421360f : 1.0f) {}
        float axis(int i) const { return i == 0 ? x : i == 1 ? y : z; }
        float along(float a, float b, float c) const {
            const float u = a * x, v = b * y;
            return larger::of(u, v) + corner * lesser::of(u, v) + c * z;
        }
    };
    // See `relative_speed` of `shape_pair`.
    struct relative {
        float speed, spin, turning;
        relative(
            vec apart, vec velocity0, vec spin0, float radius0, vec velocity1, vec spin1, float radius1
        ) {
            const vec velocity = velocity1 - velocity0;
            const float turn0 = spin0.length(), turn1 = spin1.length();
            turning = (spin1 - spin0).length();
            const float by1 = (velocity - spin0.cross(apart)).length() + turning * radius1;
            const float by0 = (velocity - spin1.cross(apart)).length() + turning * radius0;
            const float by_themselves = velocity.length() + turn0 * radius0 + turn1 * radius1;
            speed = lesser::of(lesser::of(by0, by1), by_themselves);
            spin = larger::of(turn0, turn1);
        }
    };
    // Where on a shape contacts may be: in the part of its box that is near the box of the other. See
    // `region_speed` of `shape_pair`. `from` leads to its centre from the middle of the shape.
    struct region {
        vec from;
        float radius;
        // `along` are the components of the way to the other shape, `reach` those of both boxes together.
        region(
            const vec* axis, const float* along, const float* reach, const bounding& half,
            float distance
        ) {
            float c[3], square = 0.0f;
            for (int i = 0; i < 3; ++i) {
                const float own = half.axis(i), other = reach[i] - own + distance;
                const float low = larger::of(-own, along[i] - other);
                const float high = lesser::of(own, along[i] + other);
                const float h = larger::of(high - low, 0.0f) * 0.5f;
                c[i] = 0.5f * (low + high);
                square += h * h;
            }
            from = {axis[0].x * c[0] + axis[1].x * c[1] + axis[2].x * c[2],
                    axis[0].y * c[0] + axis[1].y * c[1] + axis[2].y * c[2],
                    axis[0].z * c[0] + axis[1].z * c[1] + axis[2].z * c[2]};
            radius = wp::sqrt(square);
        }
        // `other` leads from the middle of the other shape to the centre.
        float speed(
            vec velocity, vec spin, vec other, vec velocity_other, vec spin_other, float beyond
        ) const {
            const vec at_center = velocity - velocity_other - from.cross(spin) + other.cross(spin_other);
            return at_center.length() + (spin - spin_other).length() * (radius + beyond);
        }
    };
    // See `threshold_at_speed` of `shape_pair`.
    struct acting {
        static inline float upto(float lead, float speed, float spin) {
            return lead * speed / larger::of(1.0f - lead * spin, $LEAST_SHARE);
        }
    };
    #define VEC(from, first) vec{from[first][l], from[first + 1][l], from[first + 2][l]}
    #define COLUMN(from, first) vec{from[first][l], from[first + 3][l], from[first + 6][l]}
"""

# The next pairs, and what is known of their shapes.
_PICK = """
    unsigned* words = (unsigned*)near.data + first_word;
    int word = begin >> 5;
    unsigned rest = begin < end ? words[word] & (0xffffffffu << (begin & 31)) : 0;
    for (bool has_more = begin < end; has_more;) {
        int picked[LANES], one[2][LANES], apart[LANES], size = 0;
        while (size < LANES && has_more) {
            while (!rest && ++word * 32 < end) rest = words[word];
            const int bit = rest ? word * 32 + PLURIVERSE_LOWEST_BIT(rest) : end;
            has_more = bit < end;
            if (has_more) picked[size++] = bit;
            rest &= rest - 1;
        }
        if (size < (LANES > 1 ? least_count : 1)) break;
        const float* rows[2][LANES];
        for (int l = 0; l < LANES; ++l) {
            const int pair = first_pair + picked[l < size ? l : 0];
            const int name0 = pair_shape0.data[pair], name1 = pair_shape1.data[pair];
            one[0][l] = name0 < 0 ? -1 - name0 : first_shape + name0;
            one[1][l] = name1 < 0 ? -1 - name1 : first_shape + name1;
            rows[0][l] = (const float*)(place.data + one[0][l]);
            rows[1][l] = (const float*)(place.data + one[1][l]);
        }
        float at[2][offset_at][LANES];
        for (int c = 0; c < offset_at; c += 4) {
            records::load4(rows[0], at[0] + c, c);
            records::load4(rows[1], at[1] + c, c);
        }
"""

# A lower bound of the distance. Sums of products of two unit vectors, and of lengths, are off by some 1e-6.
_DISTANCE = """
            const vec from0 = VEC(at[0], origin_at), from1 = VEC(at[1], origin_at);
            const vec middle0 = VEC(at[0], middle_at), middle1 = VEC(at[1], middle_at);
            const vec away = (from1 - from0) + (middle1 - middle0);
            float reach0[3], reach1[3], cosine[3][3], square0 = 0.0f, square1 = 0.0f;
            float lengths = wp::abs(away.x) + wp::abs(away.y) + wp::abs(away.z);
            const bounding half0(VEC(at[0], half_at)), half1(VEC(at[1], half_at));
            for (int i = 0; i < 3; ++i) {
                for (int j = 0; j < 3; ++j) {
                    cosine[i][j] = wp::abs(at[0][i][l] * at[1][j][l]
                        + at[0][3 + i][l] * at[1][3 + j][l] + at[0][6 + i][l] * at[1][6 + j][l]);
                }
            }
            for (int i = 0; i < 3; ++i) {
                reach0[i] = half0.axis(i) + half1.along(cosine[i][0], cosine[i][1], cosine[i][2]);
                reach1[i] = half1.axis(i) + half0.along(cosine[0][i], cosine[1][i], cosine[2][i]);
                lengths += half0.axis(i) + half1.axis(i);
            }
            float along0[3], along1[3];
            for (int i = 0; i < 3; ++i) {
                along0[i] = away.x * at[0][i][l] + away.y * at[0][3 + i][l] + away.z * at[0][6 + i][l];
                along1[i] = -(away.x * at[1][i][l] + away.y * at[1][3 + i][l] + away.z * at[1][6 + i][l]);
                const float gap0 = larger::of(wp::abs(along0[i]) - reach0[i], 0.0f);
                const float gap1 = larger::of(wp::abs(along1[i]) - reach1[i], 0.0f);
                square0 += gap0 * gap0;
                square1 += gap1 * gap1;
            }
            const float distance = wp::sqrt(larger::of(square0, square1)) - $BOX_ROUNDING * lengths;
            // Planes have no boxes.
            const bool has_boxes = (at[0][extent_at][l] < $ANY_SPEED) & (at[1][extent_at][l] < $ANY_SPEED);
            const float margins = at[0][margin_at][l] + at[1][margin_at][l];
            const float within_gaps = at[0][gap_threshold_at][l] + at[1][gap_threshold_at][l];
            const float lead = larger::of(at[0][lead_at][l], at[1][lead_at][l]);
            const float radius0 = at[0][radius_at][l], radius1 = at[1][radius_at][l];
            const relative before(
                away, VEC(at[0], velocity_at), VEC(at[0], spin_at), radius0,
                VEC(at[1], velocity_at), VEC(at[1], spin_at), radius1);
"""

# How fast shapes are where they are near each other: only where they turn enough for that to matter.
_REGION = """
            const vec axes0[3] = {COLUMN(at[0], 0), COLUMN(at[0], 1), COLUMN(at[0], 2)};
            const vec axes1[3] = {COLUMN(at[1], 0), COLUMN(at[1], 1), COLUMN(at[1], 2)};
            const float beyond = larger::of(at[0][spin_length_at][l], at[1][spin_length_at][l])
                + $BOX_ROUNDING * lengths;
            auto region_speed = [&](float upto, vec velocity0, vec spin0, vec velocity1, vec spin1) {
                const region on0(axes0, along0, reach0, half0, upto), on1(axes1, along1, reach1, half1, upto);
                const vec to0 = on1.from + away;
                return lesser::of(
                    on0.speed(velocity0, spin0, on0.from - away, velocity1, spin1, beyond),
                    on1.speed(velocity1, spin1, to0, velocity0, spin0, beyond));
            };
"""

_CLEAR = """
        for (int l = 0; l < size; ++l)
            if (apart[l]) words[picked[l] >> 5] &= ~(1u << (picked[l] & 31));
    }
    #undef VEC
    #undef COLUMN
"""

# How far shapes may come, as in `near_threshold` of `shape_pair`: by the fastest points of the shapes first,
# and then, of those that turn, by how fast they are near each other.
_DISTANT = """
        int turns[LANES], any = 0;
        for (int l = 0; l < LANES; ++l) {
            DISTANCE
            const float change = at[0][change_at][l] + at[1][change_at][l];
            const float moving = margins + acting::upto(lead, before.speed + change, before.spin);
            const float resting = at[0][threshold_at][l] + at[1][threshold_at][l];
            apart[l] = has_boxes & (distance > lesser::of(lead <= 0.0f ? resting : moving, within_gaps));
            turns[l] = !apart[l] & has_boxes & (lead > 0.0f)
                & (before.turning * lesser::of(radius0, radius1) > change);
            any |= turns[l];
        }
        if (any) {
            for (int l = 0; l < LANES; ++l) {
                DISTANCE
                REGION
                const float change = at[0][change_at][l] + at[1][change_at][l];
                const float farthest = margins + acting::upto(lead, before.speed + change, before.spin);
                const float speed = region_speed(
                    lesser::of(farthest, within_gaps), VEC(at[0], velocity_at), VEC(at[0], spin_at),
                    VEC(at[1], velocity_at), VEC(at[1], spin_at));
                const float moving = margins + acting::upto(lead, speed + change, before.spin);
                apart[l] |= turns[l] & (distance > moving);
            }
        }
"""

# Beyond what each shape may move by itself, or both by the velocities that were found, no contact acts. Links
# that change their velocities together are seldom faster relative to each other than was assumed. (As bodies
# by themselves: that bounds told two shapes apart says no more.)
_UNAFFECTED = """
        for (int l = 0; l < LANES; ++l) {
            rows[0][l] = (const float*)(motion.data + one[0][l]);
            rows[1][l] = (const float*)(motion.data + one[1][l]);
        }
        float now[2][6][LANES], before_assumed[LANES];
        for (int side = 0; side < 2; ++side) {
            records::load4(rows[side], now[side]);
            records::load4(rows[side], now[side] + 2, 2);
        }
        int any = 0, turns[LANES];
        for (int l = 0; l < LANES; ++l) before_assumed[l] = assumed.data[one[0][l]] + assumed.data[one[1][l]];
        for (int l = 0; l < LANES; ++l) {
            DISTANCE
            const relative after(
                away, VEC(now[0], 3), VEC(now[0], 0), radius0, VEC(now[1], 3), VEC(now[1], 0), radius1);
            const float threshold = margins + acting::upto(lead, after.speed, after.spin);
            const float looked_at = margins + lead * (before.speed + before_assumed[l]);
            const float by_themselves = at[0][threshold_at][l] + at[1][threshold_at][l];
            // Of shapes that turn, what is told by how fast they were near each other was not looked at.
            const float turning = (1.0f + $BOX_ROUNDING) * before.turning * lesser::of(radius0, radius1);
            turns[l] = turning > before_assumed[l];
            apart[l] = has_boxes & ((distance > lesser::of(by_themselves, threshold))
                | (!turns[l] & (lesser::of(threshold, within_gaps) <= looked_at)));
            any |= has_boxes & !apart[l];
        }
        if (any) {
            for (int l = 0; l < LANES; ++l) {
                DISTANCE
                REGION
                const relative after(
                    away, VEC(now[0], 3), VEC(now[0], 0), radius0, VEC(now[1], 3), VEC(now[1], 0), radius1);
                const float farthest = margins + acting::upto(lead, after.speed, after.spin);
                const float speed = lesser::of(after.speed, region_speed(lesser::of(farthest, within_gaps),
                    VEC(now[0], 3), VEC(now[0], 0), VEC(now[1], 3), VEC(now[1], 0)));
                const float threshold = margins + acting::upto(lead, speed, after.spin);
                const float far_before =
                    margins + acting::upto(lead, before.speed + before_assumed[l], before.spin);
                const float near_before = region_speed(
                    lesser::of(far_before, within_gaps), VEC(at[0], velocity_at), VEC(at[0], spin_at),
                    VEC(at[1], velocity_at), VEC(at[1], spin_at));
                const float speed_before = turns[l] ? lesser::of(before.speed, near_before) : before.speed;
                const float looked_at = margins + lead * (speed_before + before_assumed[l]);
                const float by_themselves = at[0][threshold_at][l] + at[1][threshold_at][l];
                apart[l] = has_boxes & ((distance > lesser::of(by_themselves, threshold))
                    | (lesser::of(threshold, within_gaps) <= looked_at));
            }
        }
"""


def _source(body: str) -> str:
    """Return the native code that clears the bits of pairs by `apart`, which `body` computes."""
    values = {"LEAST_SHARE": LEAST_SHARE, "BOX_ROUNDING": BOX_ROUNDING, "ANY_SPEED": ANY_SPEED}
    text = _VECTORS + _PICK + body.replace("DISTANCE", _DISTANCE).replace("REGION", _REGION) + _CLEAR
    text = Template(text).substitute({name: f"{float(value)!r}f" for name, value in values.items()})
    return LOWEST_BIT + lane_records(LANE_COUNT) + place_fields() + text


@wp.func_native(_source(_DISTANT))
def drop_distant_pairs(
    place: wp.array(dtype=ShapePlace),
    pair_shape0: wp.array[int],
    pair_shape1: wp.array[int],
    begin: int,
    end: int,
    first_pair: int,
    first_shape: int,
    least_count: int,
    near: wp.array[wp.uint32],
    first_word: int,
):
    """Clear the bits of pairs whose shapes are farther apart than `pair_threshold` of `shape_pair`.

    Args:
        place: Where the shapes are and how they move, shape [shape].
        pair_shape0: First shape of each candidate pair, as pairs name them.
        pair_shape1: Second shape.
        begin: First pair that is looked at, counted from `first_pair`.
        end: One past the last.
        first_pair: First pair of the template.
        first_shape: First shape of the world.
        least_count: Where fewer are left, they are not looked at.
        near: Words of many sets, written.
        first_word: First word of the set of this world.
    """
    ...


@wp.func_native(_source(_UNAFFECTED))
def drop_unaffected_pairs(
    place: wp.array(dtype=ShapePlace),
    motion: wp.array[wp.spatial_vector],
    assumed: wp.array[float],
    pair_shape0: wp.array[int],
    pair_shape1: wp.array[int],
    begin: int,
    end: int,
    first_pair: int,
    first_shape: int,
    least_count: int,
    near: wp.array[wp.uint32],
    first_word: int,
):
    """Clear the bits of pairs of which their motion rules out contacts that were not looked for.

    Args:
        place: Where the shapes are, how they moved, and the changes that occur, shape [shape].
        motion: How they move now: spin [rad/s], and velocity at the middle [m/s], shape [shape].
        assumed: Changes of velocity for which contacts were looked for [m/s], shape [shape].
        pair_shape0: See `drop_distant_pairs`, as all that follows.
        pair_shape1: Second shape.
        begin: First pair that is looked at.
        end: One past the last.
        first_pair: First pair of the template.
        first_shape: First shape of the world.
        least_count: Where fewer are left, they are not looked at.
        near: Words of many sets, written.
        first_word: First word of the set of this world.
    """
    ...
