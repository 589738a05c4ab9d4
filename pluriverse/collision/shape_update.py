"""Shape stage: where the shapes of a world are, and boxes that surely hold all their contacts.

Reads   body_q, body_qd of the state; shape_body, shape_transform, shape_scale, _margin, _gap of the model
Writes  `ShapeState`: rotation, position, bounds and motion of every shape; contact counters set to zero

Every shape that can touch something is placed in every step, so this is native code: 16 shapes at a time, one
component after the other, in loops without branches, which the compiler turns into vector instructions. A
shape takes 30 ns so, and 56 if each is placed by itself in a Warp function.
"""

from string import Template
from typing import Any

import warp as wp

from pluriverse.collision.contact_horizon import HorizonData
from pluriverse.collision.shape_state import (
    ACCELERATION_ASSUMED,
    ANY_SPEED,
    CHANGE_ASSUMED,
    NOTHING,
    POSITION_LIMIT,
    POSITION_ROUNDING,
    QUATERNION_NORM_MIN,
    ShapeModel,
    ShapePlace,
    ShapeState,
    bounds_vector,
)
from pluriverse.launch import launch_kernel
from pluriverse.types import GeoType

# Largest materials of the world.
_LEAD = """
    float most_tau = 0.0f, most_friction = 0.0f, most_moment = 0.0f, most_gap = 0.0f, slope = 0.0f;
    if (is_limited && !is_fixed) {
        const int own_count = end - begin, count = own_count + (int)global_shapes.shape[0];
        float taus[LANES] = {}, mus[LANES] = {}, moments[LANES] = {}, gaps[LANES] = {};
        for (int first = 0; first < count; first += LANES) {
            int shape[LANES];
            for (int l = 0; l < LANES; ++l) {
                const int e = first + l < count ? first + l : first;
                shape[l] = e < own_count ? first_shape + shapes.data[begin + e]
                                         : global_shapes.data[e - own_count];
            }
            for (int l = 0; l < LANES; ++l) gaps[l] = wp::max(gaps[l], AT(model.shape_gap, shape[l]));
            if (horizon.has_tau) {
                for (int l = 0; l < LANES; ++l) {
                    const float tau = AT(horizon.shape_tau, shape[l]);
                    taus[l] = wp::max(taus[l], OR_FALLBACK(tau, horizon.fallback_tau));
                }
            }
            if (horizon.has_mu) {
                for (int l = 0; l < LANES; ++l) {
                    const float mu = AT(horizon.shape_mu, shape[l]);
                    mus[l] = wp::max(mus[l], horizon.sliding_share * OR_FALLBACK(mu, horizon.fallback_mu));
                }
            }
            if (horizon.has_moments) {
                for (int l = 0; l < LANES; ++l) {
                    moments[l] = wp::max(moments[l], wp::max(AT(horizon.shape_mu_torsional, shape[l]),
                                                             AT(horizon.shape_mu_rolling, shape[l])));
                }
            }
        }
        for (int l = 0; l < LANES; ++l) {
            most_tau = wp::max(most_tau, taus[l]);
            most_friction = wp::max(most_friction, mus[l]);
            most_moment = wp::max(most_moment, moments[l]);
            most_gap = wp::max(most_gap, gaps[l]);
        }
        slope = wp::sqrt(1.0f + most_friction * most_friction);
    }
"""

# Types and sizes. Few shapes are meshes or planes of finite size.
_GATHER = """
        const int size = end - begin < LANES ? end - begin : LANES;
        int shape[LANES], body[LANES], type[LANES], kind[LANES];
        int is_slab[LANES], is_meshed[LANES], lacks_mesh[LANES], is_moving[LANES];
        float extent[3][LANES], center[3][LANES], lift[LANES];
        for (int l = 0; l < LANES; ++l) {
            shape[l] = first_shape + shapes.data[begin + (l < size ? l : 0)];
            body[l] = model.shape_body.data[shape[l]];
        }
        int special = 0;
        for (int l = 0; l < LANES; ++l) {
            const int one = shape[l], geo = model.shape_type.data[one];
            is_meshed[l] = (geo == $CONVEX_MESH) | (geo == $MESH) | (geo == $HFIELD);
            is_slab[l] = (geo == $BOX) & (model.shape_geo_type.data[one] == $PLANE);
            special |= is_meshed[l] | is_slab[l];
            type[l] = geo;
            int of = ((geo == $BOX) | is_meshed[l]) ? K_BOX : K_ROUND;
            of = geo == $CAPSULE ? K_CAPSULE : of;
            of = ((geo == $CYLINDER) | (geo == $CONE)) ? K_CYLINDER : of;
            kind[l] = geo == $ELLIPSOID ? K_ELLIPSOID : of;
            for (int c = 0; c < 3; ++c) {
                extent[c][l] = PART(model.shape_scale, one, c);
                center[c][l] = 0.0f;
            }
            lift[l] = 0.0f;
            lacks_mesh[l] = 0;
            is_moving[l] = (body[l] >= 0) & !is_fixed;
        }
        for (int l = 0; special && l < size; ++l) {
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
        float rotation[9][LANES], offset[3][LANES], middle[3][LANES], arm[3][LANES], norm[LANES];
        for (int l = 0; l < LANES; ++l) {
            const int one = shape[l], at = body[l] < 0 ? 0 : body[l];
            const bool has_body = body[l] >= 0;
            const float ax = has_body ? PART(body_q, at, 3) : 0.0f;
            const float ay = has_body ? PART(body_q, at, 4) : 0.0f;
            const float az = has_body ? PART(body_q, at, 5) : 0.0f;
            const float aw = has_body ? PART(body_q, at, 6) : 1.0f;
            const float bx = PART(model.shape_transform, one, 3), by = PART(model.shape_transform, one, 4);
            const float bz = PART(model.shape_transform, one, 5), bw = PART(model.shape_transform, one, 6);
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
            const float x = PART(model.shape_transform, one, 0), y = PART(model.shape_transform, one, 1);
            const float z = PART(model.shape_transform, one, 2), h = lift[l];
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
                gx = has_body ? PART(horizon.body_com, at, 0) : 0.0f;
                gy = has_body ? PART(horizon.body_com, at, 1) : 0.0f;
                gz = has_body ? PART(horizon.body_com, at, 2) : 0.0f;
            }
            arm[0][l] = mx - (b00 * gx + b01 * gy + b02 * gz);
            arm[1][l] = my - (b10 * gx + b11 * gy + b12 * gz);
            arm[2][l] = mz - (b20 * gx + b21 * gy + b22 * gz);
        }
"""
)

# Half extents along world axes as in `half_extents`, radius and diagonal.
_EXTENT = """
        float half[3][LANES], radius[LANES], diagonal[LANES];
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
            const int one = shape[l], at = body[l] < 0 ? 0 : body[l];
            const float margin = AT(model.shape_margin, one), gap = AT(model.shape_gap, one);
            const bool is_plane = type[l] == $PLANE, moves = is_moving[l];
            const float reach = (is_plane ? $ANY_SPEED : radius[l]);
            float threshold = margin + gap, finite = 0.0f;
            if (is_limited) {
                const float tx = moves ? PART(horizon.body_qd, at, 0) : 0.0f;
                const float ty = moves ? PART(horizon.body_qd, at, 1) : 0.0f;
                const float tz = moves ? PART(horizon.body_qd, at, 2) : 0.0f;
                const float sx = moves ? PART(horizon.body_qd, at, 3) : 0.0f;
                const float sy = moves ? PART(horizon.body_qd, at, 4) : 0.0f;
                const float sz = moves ? PART(horizon.body_qd, at, 5) : 0.0f;
                float tau = 0.0f;
                if (horizon.has_tau) {
                    tau = AT(horizon.shape_tau, one);
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
                float assumed = $CHANGE_ASSUMED * speed + $ACCELERATION_ASSUMED * horizon.dt;
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
            box[0][l] = (body[l] >= 0 ? PART(body_q, at, 0) : 0.0f) + middle[0][l];
            box[1][l] = (body[l] >= 0 ? PART(body_q, at, 1) : 0.0f) + middle[1][l];
            box[2][l] = (body[l] >= 0 ? PART(body_q, at, 2) : 0.0f) + middle[2][l];
            const float distance = wp::abs(box[0][l]) + wp::abs(box[1][l]) + wp::abs(box[2][l]);
            const float inflation = threshold + $POSITION_ROUNDING * distance;
            box[3][l] = half[0][l] + inflation;
            box[4][l] = half[1][l] + inflation;
            box[5][l] = half[2][l] + inflation;
            // Written so that NaN fails each comparison.
            const float sum = half[0][l] + half[1][l] + half[2][l] + threshold;
            sound[l] = (distance < $POSITION_LIMIT) & (norm[l] > $QUATERNION_NORM_MIN)
                & (norm[l] < $POSITION_LIMIT) & (sum - sum == 0.0f) & (finite == 0.0f);
        }
"""

_SCATTER = """
        for (int l = 0; l < size; ++l) {
            const int one = shape[l];
            auto& to = place.data[one];
            float* bound = (float*)(bounds.data + one);
            const bool is_enabled = AT(model.shape_enabled, one);
            if (!lacks_mesh[l]) {
                to.origin = body[l] >= 0 ? AT(body_q, body[l]).p : wp::vec_t<3, wp::float32>();
                to.size = AT(model.shape_scale, one);
                if (is_slab[l]) to.size = wp::vec_t<3, wp::float32>(extent[0][l], extent[1][l], extent[2][l]);
                to.gap_threshold = AT(model.shape_margin, one) + AT(model.shape_gap, one);
                for (int c = 0; c < 9; ++c) to.rotation.data[c / 3][c % 3] = rotation[c][l];
                for (int c = 0; c < 3; ++c) {
                    to.offset[c] = offset[c][l];
                    to.middle[c] = middle[c][l];
                }
                to.extent = type[l] == $PLANE ? $ANY_SPEED : diagonal[l];
                to.radius = radius[l];
                // What comes near a plane depends on its threshold alone; of all others, on their bounds.
                to.threshold = is_enabled ? near[l] : $NOTHING;
                to.margin = AT(model.shape_margin, one);
                to.lead = 0.0f;
                if (is_limited) {
                    for (int c = 0; c < 3; ++c) {
                        to.velocity[c] = velocity[c][l];
                        to.spin[c] = spin[c][l];
                    }
                    to.margin = apart[l];
                    to.threshold_limit = limit[l];
                    to.change = change[l];
                    to.lead = lead[l];
                    to.friction = most_friction;
                    to.spin_length = most_moment;
                }
            } else {
                // An index that somebody wrote there: it is reported, and must not be followed.
                to.threshold = $NOTHING;
                sound[l] = 0;
            }
            const bool has_box = sound[l] && is_enabled;
            for (int c = 0; c < 6; ++c) bound[c] = has_box ? box[c][l] : c < 3 ? 0.0f : $NOTHING;
            all_sound &= !lacks_mesh[l] && (sound[l] || !is_enabled);
        }
"""

_SOURCE = Template(
    """
    #ifdef __CUDA_ARCH__
    enum { LANES = 1 };
    #else
    enum { LANES = 16 };
    #endif
    enum { K_ROUND, K_CAPSULE, K_CYLINDER, K_ELLIPSOID, K_BOX };
    // Arrays of users may have strides. PART is one number of an element of several.
    #define AT(array, i) (*(decltype((array).data))((char*)(array).data + (i) * (array).strides[0]))
    #define PART(array, i, part) (((const float*)(array).data)[(i) * ((array).strides[0] / 4) + (part)])
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
    #undef PART
    #undef OR_FALLBACK
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
    shapes: wp.array[int],
    begin: int,
    end: int,
    first_shape: int,
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
        shapes: Lists of shapes, counted from `first_shape`.
        begin: First entry of `shapes` that is placed.
        end: One past the last entry.
        first_shape: First shape of the world.
        global_shapes: Shapes outside of all worlds, whose materials count too.
        is_complete: Whether no contact of the world is left out.
        is_fixed: Whether the shapes do not move, whatever their bodies do.
        place: Written, shape [shape].
        bounds: Written, shape [shape].
    """
    ...


@wp.kernel(enable_backward=False, module="pluriverse.collision.shape_update")
def update_world_shapes(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    global_shapes: wp.array[int],  # [global shape] flat shape index
    model: ShapeModel,
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    horizon: HorizonData,
    # out
    state: ShapeState,
    contact_found: wp.array[int],  # [world] -1: nothing could be looked for
    contact_count: wp.array[int],  # [world]
):
    """Place those shapes of one world that may touch something, and forget its contacts."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
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
        model.collider,
        start,
        end,
        first_shape,
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
        global_shapes,
        entry,
        entry + 1,
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
    launch_kernel(
        update_world_shapes,
        dim=worlds.size,
        inputs=[worlds, global_shapes, model, body_q, horizon],
        outputs=[state, contact_found, contact_count],
        device=device,
    )
