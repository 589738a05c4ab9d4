"""Shape stage: where the shapes of a world are, and boxes that surely hold all their contacts.

Reads   body_q, body_qd of the state; shape_body, shape_transform, shape_scale, _margin, _gap of the model
Writes  `ShapeState`: rotation, position, bounds and motion of every shape; contact counters set to zero

Every shape that can touch something is placed in every step, so this is native code: eight shapes at a time,
one component after the other, in loops without branches, which the compiler turns into vector instructions. A
shape takes 30 ns so, and 56 if each is placed by itself in a Warp function.
"""

from string import Template
from typing import Any

import warp as wp

from pluriverse.collision.contact_horizon import HorizonData
from pluriverse.collision.shape_state import (
    ACCELERATION_ASSUMED,
    ACCELERATION_AT_REST,
    ANY_SPEED,
    CHANGE_ASSUMED,
    NOTHING,
    POSITION_LIMIT,
    POSITION_ROUNDING,
    QUATERNION_NORM_MIN,
    SPEED_SHARE_ASSUMED,
    ShapeModel,
    ShapePlace,
    ShapeState,
    bounds_vector,
    place_fields,
)
from pluriverse.launch import launch_kernel, world_thread_count
from pluriverse.math.lane_records import lane_records
from pluriverse.types import GeoType

# Largest materials of the world.
_LEAD = """
    float most_tau = 0.0f, most_friction = 0.0f, most_moment = 0.0f, most_gap = 0.0f, slope = 0.0f;
    if (is_limited && !is_fixed) {
        const int own_count = end - begin, count = own_count + (int)global_shapes.shape[0];
        ONE_BY_ONE
        for (int e = 0; e < count; ++e) {
            const int one = e < own_count ? first_shape + shapes.data[begin + e][0]
                                          : global_shapes.data[e - own_count];
            most_gap = wp::max(most_gap, AT(model.shape_gap, one));
            if (horizon.has_tau) {
                const float tau = AT(horizon.shape_tau, one);
                most_tau = wp::max(most_tau, OR_FALLBACK(tau, horizon.fallback_tau));
            }
            if (horizon.has_mu) {
                const float mu = AT(horizon.shape_mu, one);
                most_friction = wp::max(
                    most_friction, horizon.sliding_share * OR_FALLBACK(mu, horizon.fallback_mu));
            }
            if (horizon.has_moments) {
                most_moment = wp::max(most_moment, wp::max(AT(horizon.shape_mu_torsional, one),
                                                           AT(horizon.shape_mu_rolling, one)));
            }
        }
        slope = wp::sqrt(1.0f + most_friction * most_friction);
    }
"""

# Types and sizes. Few shapes are meshes or planes of finite size.
_GATHER = """
        const int size = end - begin < LANES ? end - begin : LANES;
        int shape[LANES], body[LANES], type[LANES], kind[LANES];
        int is_slab[LANES], is_meshed[LANES], lacks_mesh[LANES], is_moving[LANES];
        int is_enabled[LANES];
        float scale[3][LANES], extent[3][LANES], center[3][LANES], lift[LANES];
        float margins[LANES], gaps[LANES], taus[LANES], structure[4][LANES];
        const float* rows[LANES];
        for (int l = 0; l < LANES; ++l) rows[l] = (const float*)(shapes.data + begin + (l < size ? l : 0));
        records::load4(rows, structure);
        int numbers[4][LANES];
        memcpy(numbers, structure, sizeof(numbers));
        for (int l = 0; l < LANES; ++l) {
            shape[l] = first_shape + numbers[0][l];
            body[l] = numbers[1][l] < 0 ? -1 : first_body + numbers[1][l];
            type[l] = numbers[2][l];
            is_slab[l] = numbers[3][l];
        }
        ONE_BY_ONE
        for (int l = 0; l < LANES; ++l) {
            const int one = shape[l];
            is_enabled[l] = AT(model.shape_enabled, one);
            margins[l] = AT(model.shape_margin, one);
            gaps[l] = AT(model.shape_gap, one);
            taus[l] = is_limited && horizon.has_tau ? AT(horizon.shape_tau, one) : 0.0f;
        }
        for (int l = 0; l < LANES; ++l) rows[l] = ROW(model.shape_scale, shape[l]);
        records::load3(rows, scale);
        int special = 0;
        for (int l = 0; l < LANES; ++l) {
            const int geo = type[l];
            is_meshed[l] = (geo == $CONVEX_MESH) | (geo == $MESH) | (geo == $HFIELD);
            special |= is_meshed[l] | is_slab[l];
            int of = ((geo == $BOX) | is_meshed[l]) ? K_BOX : K_ROUND;
            of = geo == $CAPSULE ? K_CAPSULE : of;
            of = ((geo == $CYLINDER) | (geo == $CONE)) ? K_CYLINDER : of;
            kind[l] = geo == $ELLIPSOID ? K_ELLIPSOID : of;
            for (int c = 0; c < 3; ++c) {
                extent[c][l] = scale[c][l];
                center[c][l] = 0.0f;
            }
            lift[l] = 0.0f;
            lacks_mesh[l] = 0;
            is_moving[l] = (body[l] >= 0) & !is_fixed;
        }
        for (int l = 0; special && l < LANES; ++l) {
            const float x = extent[0][l], y = extent[1][l], z = extent[2][l];
            if (is_slab[l]) {
                // See `is_slab`.
                extent[0][l] = 0.5f * x;
                extent[1][l] = 0.5f * y;
                lift[l] = extent[2][l] = 0.25f * wp::min(x, y);
            } else if (is_meshed[l]) {
                const int mesh = AT(model.shape_source_index, shape[l]);
                lacks_mesh[l] = mesh < 0 || mesh >= (int)model.mesh_types.shape[0]
                    || !(model.mesh_types.data[mesh] & (1 << type[l]));
                if (lacks_mesh[l]) continue;
                const bool is_hull = type[l] == $CONVEX_MESH;
                const int one = is_hull ? model.mesh_hull.data[mesh] : mesh;
                const auto low = (is_hull ? model.hull_lower : model.mesh_lower).data[one];
                const auto high = (is_hull ? model.hull_upper : model.mesh_upper).data[one];
                const float x0 = low[0] * x, y0 = low[1] * y, x1 = high[0] * x, y1 = high[1] * y;
                float z0 = low[2] * z, z1 = high[2] * z;
                // Solid below: what has sunk in by less than the width of the field is found.
                if (type[l] == $HFIELD) z0 = z0 - wp::max(x1 - x0, y1 - y0);
                center[0][l] = 0.5f * (x0 + x1);
                center[1][l] = 0.5f * (y0 + y1);
                center[2][l] = 0.5f * (z0 + z1);
                extent[0][l] = 0.5f * wp::abs(x1 - x0);
                extent[1][l] = 0.5f * wp::abs(y1 - y0);
                extent[2][l] = 0.5f * wp::abs(z1 - z0);
            }
        }
"""

# Rotation matrix of a quaternion of any length, see `rotation_of`.
_MATRIX = """
            const float $p = 2.0f / ($x * $x + $y * $y + $z * $z + $w * $w);
            const float ${p}xs = $x * $p, ${p}ys = $y * $p, ${p}zs = $z * $p;
            const float ${p}wx = $w * ${p}xs, ${p}wy = $w * ${p}ys, ${p}wz = $w * ${p}zs;
            const float ${p}xx = $x * ${p}xs, ${p}xy = $x * ${p}ys, ${p}xz = $x * ${p}zs;
            const float ${p}yy = $y * ${p}ys, ${p}yz = $y * ${p}zs, ${p}zz = $z * ${p}zs;
            const float ${p}00 = 1.0f - ${p}yy - ${p}zz, ${p}01 = ${p}xy - ${p}wz, ${p}02 = ${p}xz + ${p}wy;
            const float ${p}10 = ${p}xy + ${p}wz, ${p}11 = 1.0f - ${p}xx - ${p}zz, ${p}12 = ${p}yz - ${p}wx;
            const float ${p}20 = ${p}xz - ${p}wy, ${p}21 = ${p}yz + ${p}wx, ${p}22 = 1.0f - ${p}xx - ${p}yy;
"""

_POSE = (
    """
        // The fixed world has no entry in arrays of bodies.
        const float fixed[7] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 1.0f};
        float pose[7][LANES], local[7][LANES], com[3][LANES], twist[6][LANES];
        for (int l = 0; l < LANES; ++l) rows[l] = ROW(model.shape_transform, shape[l]);
        records::load4(rows, local);
        records::load4(rows, local + 3, 3);
        for (int l = 0; l < LANES; ++l) rows[l] = body[l] >= 0 ? ROW(body_q, body[l]) : fixed;
        records::load4(rows, pose);
        records::load4(rows, pose + 3, 3);
        if (is_limited) {
            for (int l = 0; l < LANES; ++l) rows[l] = body[l] >= 0 ? ROW(horizon.body_com, body[l]) : fixed;
            records::load3(rows, com);
            for (int l = 0; l < LANES; ++l) rows[l] = is_moving[l] ? ROW(horizon.body_qd, body[l]) : fixed;
            records::load4(rows, twist);
            records::load4(rows, twist + 2, 2);
        }
        float rotation[9][LANES], offset[3][LANES], middle[3][LANES], arm[3][LANES], norm[LANES];
        for (int l = 0; l < LANES; ++l) {
            const float ax = pose[3][l], ay = pose[4][l], az = pose[5][l], aw = pose[6][l];
            const float bx = local[3][l], by = local[4][l], bz = local[5][l], bw = local[6][l];
"""
    + Template(_MATRIX).substitute(p="b", x="ax", y="ay", z="az", w="aw")
    + """
            const float qx = aw * bx + bw * ax + ay * bz - by * az;
            const float qy = aw * by + bw * ay + az * bx - bz * ax;
            const float qz = aw * bz + bw * az + ax * by - bx * ay;
            const float qw = aw * bw - ax * bx - ay * by - az * bz;
            norm[l] = qx * qx + qy * qy + qz * qz + qw * qw;
"""
    + Template(_MATRIX).substitute(p="r", x="qx", y="qy", z="qz", w="qw")
    + """
            rotation[0][l] = r00; rotation[1][l] = r01; rotation[2][l] = r02;
            rotation[3][l] = r10; rotation[4][l] = r11; rotation[5][l] = r12;
            rotation[6][l] = r20; rotation[7][l] = r21; rotation[8][l] = r22;
            const float x = local[0][l], y = local[1][l], z = local[2][l], h = lift[l];
            const float ox = (b00 * x + b01 * y + b02 * z) - r02 * h;
            const float oy = (b10 * x + b11 * y + b12 * z) - r12 * h;
            const float oz = (b20 * x + b21 * y + b22 * z) - r22 * h;
            offset[0][l] = ox; offset[1][l] = oy; offset[2][l] = oz;
            const float cx = center[0][l], cy = center[1][l], cz = center[2][l];
            const float mx = ox + (r00 * cx + r01 * cy + r02 * cz);
            const float my = oy + (r10 * cx + r11 * cy + r12 * cz);
            const float mz = oz + (r20 * cx + r21 * cy + r22 * cz);
            middle[0][l] = mx; middle[1][l] = my; middle[2][l] = mz;
            float gx = 0.0f, gy = 0.0f, gz = 0.0f;
            if (is_limited) {
                gx = com[0][l];
                gy = com[1][l];
                gz = com[2][l];
            }
            arm[0][l] = mx - (b00 * gx + b01 * gy + b02 * gz);
            arm[1][l] = my - (b10 * gx + b11 * gy + b12 * gz);
            arm[2][l] = mz - (b20 * gx + b21 * gy + b22 * gz);
        }
"""
)

# Half extents along world axes as in `half_extents`, radius and diagonal.
_EXTENT = """
        float half[3][LANES], around[3][LANES], radius[LANES], diagonal[LANES];
        for (int l = 0; l < LANES; ++l) {
            const float x = extent[0][l], y = extent[1][l], z = extent[2][l];
            const float r00 = rotation[0][l], r01 = rotation[1][l], r02 = rotation[2][l];
            const float r10 = rotation[3][l], r11 = rotation[4][l], r12 = rotation[5][l];
            const float r20 = rotation[6][l], r21 = rotation[7][l], r22 = rotation[8][l];
            const int k = kind[l];
            const float a = wp::abs(r02), b = wp::abs(r12), c = wp::abs(r22);
            const float box0 = wp::abs(r00) * x + wp::abs(r01) * y + a * z;
            const float box1 = wp::abs(r10) * x + wp::abs(r11) * y + b * z;
            const float box2 = wp::abs(r20) * x + wp::abs(r21) * y + c * z;
            const float reach = k == K_CAPSULE ? y : 0.0f;
            half[0][l] = k == K_BOX ? box0 : x + reach * a;
            half[1][l] = k == K_BOX ? box1 : x + reach * b;
            half[2][l] = k == K_BOX ? box2 : x + reach * c;
            diagonal[l] = wp::sqrt(x * x + y * y + z * z);
            radius[l] = k == K_CAPSULE ? x + y : diagonal[l];
            // The same in axes of the shape. A minus sign tells what a cylinder holds.
            around[0][l] = x;
            const bool is_whole = (k == K_BOX) | (k == K_ELLIPSOID);
            const float up = k == K_CAPSULE ? x + y : y;
            around[1][l] = k == K_BOX ? y : k == K_ELLIPSOID ? -y : -x;
            around[2][l] = is_whole ? z : k == K_ROUND ? x : up;
        }
        int has_curved = 0;
        for (int l = 0; l < LANES; ++l) has_curved |= (kind[l] == K_CYLINDER) | (kind[l] == K_ELLIPSOID);
        if (has_curved) {
            for (int axis = 0; axis < 3; ++axis) {
                for (int l = 0; l < LANES; ++l) {
                    const float x = extent[0][l], y = extent[1][l], z = extent[2][l];
                    const float r0 = rotation[3 * axis][l], r1 = rotation[3 * axis + 1][l];
                    const float r2 = rotation[3 * axis + 2][l];
                    const float e0 = r0 * x, e1 = r1 * y, e2 = r2 * z;
                    // A disc of unit radius reaches sqrt(1 - z^2), z being its normal's component.
                    const float disc = y * wp::abs(r2) + x * wp::sqrt(wp::max(0.0f, r0 * r0 + r1 * r1));
                    const float ellipsoid = wp::sqrt(e0 * e0 + e1 * e1 + e2 * e2);
                    const float other = kind[l] == K_ELLIPSOID ? ellipsoid : half[axis][l];
                    half[axis][l] = kind[l] == K_CYLINDER ? disc : other;
                }
            }
        }
"""

# How shapes move, and up to which distance contacts matter by that.
_MOTION = """
        float velocity[3][LANES], spin[3][LANES], lead[LANES], change[LANES], limit[LANES], near[LANES];
        float apart[LANES], box[6][LANES];
        int sound[LANES];
        for (int l = 0; l < LANES; ++l) {
            const int one = shape[l];
            const float margin = margins[l], gap = gaps[l];
            const bool is_plane = type[l] == $PLANE, moves = is_moving[l];
            const float reach = (is_plane ? $ANY_SPEED : radius[l]);
            float threshold = margin + gap, finite = 0.0f;
            if (is_limited) {
                const float tx = twist[0][l], ty = twist[1][l], tz = twist[2][l];
                const float sx = twist[3][l], sy = twist[4][l], sz = twist[5][l];
                float tau = 0.0f;
                if (horizon.has_tau) {
                    tau = taus[l];
                    tau = OR_FALLBACK(tau, horizon.fallback_tau) + most_tau;
                }
                const float ax = arm[0][l], ay = arm[1][l], az = arm[2][l];
                const float vx = tx + (sy * az - sz * ay);
                const float vy = ty + (sz * ax - sx * az);
                const float vz = tz + (sx * ay - sy * ax);
                finite = tx * 0.0f + ty * 0.0f + tz * 0.0f + sx * 0.0f + sy * 0.0f
                    + sz * 0.0f;
                const float outer = reach + most_moment + (moves ? midway * gap : 0.0f);
                const float ahead = moves ? (horizon.dt + tau) * slope : 0.0f;
                float speed = wp::sqrt(vx * vx + vy * vy + vz * vz)
                    + wp::sqrt(sx * sx + sy * sy + sz * sz) * outer;
                speed = moves ? speed : 0.0f;
                float assumed = $ACCELERATION_AT_REST * horizon.dt + $SPEED_SHARE_ASSUMED * speed;
                const float assumed_most = $ACCELERATION_ASSUMED * horizon.dt;
                assumed = assumed < assumed_most ? assumed : assumed_most;
                assumed += $CHANGE_ASSUMED * speed;
                if (horizon.is_repeated) assumed = wp::max(assumed, place.data[one].change);
                // NaN too: what is not known to be slow may be anywhere.
                const bool is_slow = !moves || is_complete || speed + assumed < $ANY_SPEED;
                assumed = is_complete || !is_slow ? $ANY_SPEED : assumed;
                assumed = moves ? assumed : 0.0f;
                speed = is_slow ? speed : 0.0f;
                const bool has_motion = is_slow && moves;
                velocity[0][l] = has_motion ? vx : 0.0f;
                velocity[1][l] = has_motion ? vy : 0.0f;
                velocity[2][l] = has_motion ? vz : 0.0f;
                spin[0][l] = has_motion ? sx : 0.0f;
                spin[1][l] = has_motion ? sy : 0.0f;
                spin[2][l] = has_motion ? sz : 0.0f;
                lead[l] = ahead;
                change[l] = assumed;
                radius[l] = outer;
                // No pair is looked at beyond its gaps. Without that bound rounding would lose the extents.
                const float most = gap + most_gap, at_rest = ahead * horizon.sliding_speed;
                limit[l] = margin + most;
                apart[l] = margin + at_rest;
                threshold = margin + wp::min((speed + assumed) * ahead + at_rest, most);
            } else {
                radius[l] = reach;
            }
            near[l] = threshold;
            box[0][l] = pose[0][l] + middle[0][l];
            box[1][l] = pose[1][l] + middle[1][l];
            box[2][l] = pose[2][l] + middle[2][l];
            const float distance = wp::abs(box[0][l]) + wp::abs(box[1][l]) + wp::abs(box[2][l]);
            const float inflation = threshold + $POSITION_ROUNDING * distance;
            box[3][l] = half[0][l] + inflation;
            box[4][l] = half[1][l] + inflation;
            box[5][l] = half[2][l] + inflation;
            // Written so that NaN fails each comparison.
            const float sum = half[0][l] + half[1][l] + half[2][l] + threshold;
            sound[l] = !lacks_mesh[l] & (distance < $POSITION_LIMIT) & (norm[l] > $QUATERNION_NORM_MIN)
                & (norm[l] < $POSITION_LIMIT) & (sum - sum == 0.0f) & (finite == 0.0f);
        }
"""

_SCATTER = """
        // Whole records, a number of all lanes after the other.
        float record[PLACE_SIZE][LANES];
        for (int l = 0; l < LANES; ++l) {
            for (int c = 0; c < 9; ++c) record[rotation_at + c][l] = rotation[c][l];
            for (int c = 0; c < 3; ++c) {
                record[origin_at + c][l] = pose[c][l];
                record[offset_at + c][l] = offset[c][l];
                record[size_at + c][l] = is_slab[l] ? extent[c][l] : scale[c][l];
                record[middle_at + c][l] = middle[c][l];
                record[half_at + c][l] = around[c][l];
                record[velocity_at + c][l] = is_limited ? velocity[c][l] : 0.0f;
                record[spin_at + c][l] = is_limited ? spin[c][l] : 0.0f;
            }
            record[extent_at][l] = type[l] == $PLANE ? $ANY_SPEED : diagonal[l];
            record[radius_at][l] = radius[l];
            // What comes near a plane depends on its threshold alone; of all others, on their bounds.
            record[threshold_at][l] = is_enabled[l] ? near[l] : $NOTHING;
            record[margin_at][l] = is_limited ? apart[l] : margins[l];
            record[gap_threshold_at][l] = margins[l] + gaps[l];
            record[threshold_limit_at][l] = is_limited ? limit[l] : 0.0f;
            record[change_at][l] = is_limited ? change[l] : 0.0f;
            record[lead_at][l] = is_limited ? lead[l] : 0.0f;
            record[friction_at][l] = most_friction;
            record[spin_length_at][l] = most_moment;
            const bool has_box = sound[l] & is_enabled[l];
            for (int c = 0; c < 6; ++c) box[c][l] = has_box ? box[c][l] : c < 3 ? 0.0f : $NOTHING;
        }
        // Lanes to spare repeat the first, to the bit.
        float* to[LANES];
        float unused[PLACE_SIZE];
        for (int l = 0; l < LANES; ++l) to[l] = lacks_mesh[l] ? unused : (float*)(place.data + shape[l]);
        static_assert(PLACE_SIZE % 4 == 0, "places are written four numbers at a time");
        for (int c = 0; c < PLACE_SIZE; c += 4) records::store4(record + c, to, c);
        for (int l = 0; l < LANES; ++l) to[l] = (float*)(bounds.data + shape[l]);
        records::store4(box, to);
        records::store2(box + 4, to, 4);
        for (int l = 0; l < size; ++l) {
            all_sound &= sound[l] | !is_enabled[l];
            // An index that somebody wrote there: it is reported, and must not be followed.
            if (lacks_mesh[l]) place.data[shape[l]].threshold = $NOTHING;
        }
"""


_SOURCE = Template(
    lane_records(8)
    + place_fields()
    + """
    enum { K_ROUND, K_CAPSULE, K_CYLINDER, K_ELLIPSOID, K_BOX };
    // Arrays of users may have strides. ROW are the numbers of an element of several.
    #define AT(array, i) (*(decltype((array).data))((char*)(array).data + (i) * (array).strides[0]))
    #define ROW(array, i) ((const float*)((const char*)(array).data + (i) * (array).strides[0]))
    // What the vectorizer would gather, number by number, is loaded sooner so.
    #ifdef __CUDA_ARCH__
    #define ONE_BY_ONE
    #else
    #define ONE_BY_ONE _Pragma("clang loop vectorize(disable)")
    #endif
    #define OR_FALLBACK(value, fallback) ((value) >= 0.0f && (value) <= 3.4028235e38f ? (value) : (fallback))
    const bool is_limited = horizon.is_limited != 0;
    const float midway = horizon.is_midway ? 1.0f : 0.0f;
"""
    + _LEAD
    + """
    int all_sound = 1;
    for (; begin < end; begin += LANES) {
"""
    + _GATHER
    + _POSE
    + _EXTENT
    + _MOTION
    + _SCATTER
    + """
    }
    #undef AT
    #undef ROW
    #undef OR_FALLBACK
    #undef ONE_BY_ONE
    return all_sound;
"""
).substitute(
    {kind.name: int(kind) for kind in GeoType}
    | {
        name: f"{float(value)!r}f"
        for name, value in (
            ("ANY_SPEED", ANY_SPEED),
            ("NOTHING", NOTHING),
            ("CHANGE_ASSUMED", CHANGE_ASSUMED),
            ("ACCELERATION_ASSUMED", ACCELERATION_ASSUMED),
            ("ACCELERATION_AT_REST", ACCELERATION_AT_REST),
            ("SPEED_SHARE_ASSUMED", SPEED_SHARE_ASSUMED),
            ("POSITION_LIMIT", POSITION_LIMIT),
            ("POSITION_ROUNDING", POSITION_ROUNDING),
            ("QUATERNION_NORM_MIN", QUATERNION_NORM_MIN),
        )
    }
)


@wp.func_native(_SOURCE)
def place_shapes(
    model: ShapeModel,
    body_q: wp.array[wp.transform],
    horizon: HorizonData,
    shapes: wp.array[wp.vec4i],
    begin: int,
    end: int,
    first_shape: int,
    first_body: int,
    global_shapes: wp.array[int],
    is_complete: int,
    is_fixed: int,
    place: wp.array(dtype=ShapePlace),
    bounds: wp.array(dtype=bounds_vector),
) -> int:
    """Write places and bounds of some shapes; return whether pose, sizes and mesh of each are sound.

    A shape that is switched off is sound whatever it is, as long as its mesh exists.

    Args:
        model: The shapes.
        body_q: Poses of bodies [m, xyzw], shape [body].
        horizon: What contacts are wanted, and how bodies move.
        shapes: Lists of shapes, see `ShapeModel.collider_record`.
        begin: First entry of `shapes` that is placed.
        end: One past the last entry.
        first_shape: First shape of the world.
        first_body: First body of the world.
        global_shapes: Shapes outside of all worlds, whose materials count too.
        is_complete: Whether no contact of the world is left out.
        is_fixed: Whether the shapes do not move, whatever their bodies do.
        place: Written, shape [shape].
        bounds: Written, shape [shape].
    """
    ...


@wp.func
def update_shapes_of_world(
    world: int,
    global_shapes: wp.array[int],
    model: wp.ref[ShapeModel],
    body_q: wp.array[wp.transform],
    horizon: wp.ref[HorizonData],
    state: wp.ref[ShapeState],
    contact_found: wp.array[int],
    contact_count: wp.array[int],
):
    """Place those shapes of one world that may touch something, and forget its contacts."""
    first_shape = model.world_shape[world]
    template = model.world_template[world]
    start = model.collider_start[template]
    end = model.collider_start[template + 1]
    is_valid = bool(True)
    for entry in range(global_shapes.shape[0]):
        shape = global_shapes[entry]
        if state.bounds[shape][3] == NOTHING and model.shape_enabled[shape]:
            is_valid = False
    is_complete = int(0)
    if horizon.is_limited != 0 and horizon.has_complete != 0:
        is_complete = horizon.world_complete[world]
    are_sound = place_shapes(
        model,
        body_q,
        horizon,
        model.collider_record,
        start,
        end,
        first_shape,
        model.world_body[world],
        global_shapes,
        is_complete,
        0,
        state.place,
        state.bounds,
    )
    if are_sound == 0 or not is_valid:
        is_valid = False
        # One diverged body makes the whole world meaningless, and so does NaN that somebody wrote into the
        # place or the size of a shape: the world touches nothing, and the solver freezes it.
        for entry in range(start, end):
            shape = first_shape + model.collider[entry]
            state.bounds[shape] = bounds_vector(0.0, 0.0, 0.0, NOTHING, NOTHING, NOTHING)
    contact_found[world] = wp.where(is_valid, 0, -1)
    contact_count[world] = 0


@wp.kernel(enable_backward=False, module="pluriverse.collision.shape_update")
def update_world_shapes(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    stride: int,  # number of threads, see `world_thread_count`
    global_shapes: wp.array[int],  # [global shape] flat shape index
    model: ShapeModel,
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    horizon: HorizonData,
    # out
    state: ShapeState,
    contact_found: wp.array[int],  # [world] -1: nothing could be looked for
    contact_count: wp.array[int],  # [world]
):
    """Place the shapes of some worlds, one after the other."""
    thread, _ = wp.tid()
    for slot in range(thread, worlds.shape[0], stride):
        world = worlds[slot]
        if world >= 0:
            update_shapes_of_world(
                world, global_shapes, model, body_q, horizon, state, contact_found, contact_count
            )


@wp.kernel(enable_backward=False, module="pluriverse.collision.shape_update")
def update_global_shape(
    global_shapes: wp.array[int],  # [global shape] flat shape index
    model: ShapeModel,
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    horizon: HorizonData,
    # out
    state: ShapeState,
):
    """Place one shape that all worlds share. It does not move."""
    entry, _ = wp.tid()
    place_shapes(
        model,
        body_q,
        horizon,
        model.global_record,
        entry,
        entry + 1,
        0,
        0,
        global_shapes,
        0,
        1,
        state.place,
        state.bounds,
    )


def update_shapes(
    worlds: wp.array[int],
    global_shapes: wp.array[int],
    model: ShapeModel,
    body_q: wp.array[wp.transform],
    horizon: HorizonData,
    state: ShapeState,
    contact_found: wp.array[int],
    contact_count: wp.array[int],
    device: Any,
) -> None:
    """Write `state` for the shapes of `worlds` and of `global_shapes`, and zero the contact counters.

    Global shapes do not move. Every thread that steps some of the worlds writes them, always the same bits.
    """
    if global_shapes.size:
        launch_kernel(
            update_global_shape,
            dim=global_shapes.size,
            inputs=[global_shapes, model, body_q, horizon],
            outputs=[state],
            device=device,
        )
    threads = world_thread_count(worlds)
    launch_kernel(
        update_world_shapes,
        dim=threads,
        inputs=[worlds, threads, global_shapes, model, body_q, horizon],
        outputs=[state, contact_found, contact_count],
        device=device,
    )
