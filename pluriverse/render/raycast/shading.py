"""Shading: the colour of a pixel, by rays to the visible surface, to the sun and to the sky.

Light comes from a sun of finite width, which gives soft shadows, from the sky above and from the ground's
reflection below; nearby surfaces block the latter two (ambient occlusion). Pixels average several rays in
linear light and are stored as display values.
"""

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.render.raycast.appearance import RayAppearance, Surface, surface_at, to_linear
from pluriverse.render.raycast.primitives import MISS
from pluriverse.render.raycast.scene import RayScene
from pluriverse.render.raycast.trace import Excluded, RayHit, enter_box, no_hit, safe_inverse, trace_group
from pluriverse.types import GeoType

# Largest number of translucent surfaces along a ray.
LAYERS = wp.constant(6)
# Rays after which sampling stops for a pixel of uniform colour.
FIRST_SAMPLES = wp.constant(6)
# Spread of brightness below which a pixel counts as uniform: half a step of 8 bits.
SAME_BRIGHTNESS = wp.constant(0.002)
# Distance that rays to lights start above a surface, relative to the distance from the eye.
LIFT = wp.constant(2.0e-5)
LIFT_MIN = wp.constant(1.0e-6)


@wp.struct
class Light:
    """Light and surroundings."""

    up: wp.vec3  # unit, along an axis
    sun_direction: wp.vec3  # unit, towards the sun
    sun_color: wp.vec3  # linear light
    sun_spread: float  # tangent of half the angle under which the sun is seen
    sky_color: wp.vec3  # linear light from above
    bounce_color: wp.vec3  # linear light from below
    horizon_color: wp.vec3  # display values of the background, level with the eye
    zenith_color: wp.vec3  # display values of the background above
    shadows: int  # 1 if things cast shadows
    occlusion_distance: float  # m, how far what is near darkens; 0 for not at all
    floor_height: float  # m, of a floor of the picture's own
    has_floor: int  # 1 if there is one
    floor_color: wp.vec3  # display values of that floor, and of planes that were given no colour
    plain_color: wp.vec3  # display values of planes that were given no colour
    grid_spacing: float  # m, between the lines on endless planes; 0 for none
    fade_distance: float  # m, at which endless planes become background


@wp.struct
class View:
    """Cameras and the worlds that each one sees."""

    camera_position: wp.array[wp.vec3]  # [camera] m
    camera_rotation: wp.array[wp.mat33]  # [camera] looks along -z, y up
    tangent: wp.array[float]  # [camera] of half the vertical field of view
    view_start: wp.array[int]  # [camera + 1] first entry of view_world
    view_world: wp.array[int]  # [entry] world that is seen
    view_offset: wp.array[wp.vec3]  # [entry] m, where it is put
    width: int
    height: int


@wp.struct
class ViewHit:
    """Hit of a camera ray, and the world of the hit."""

    hit: RayHit
    offset: wp.vec3


@wp.func
def trace_view(
    scene: RayScene,
    view: View,
    camera: int,
    origin: wp.vec3,
    direction: wp.vec3,
    max_distance: float,
    any_hit: int,
) -> ViewHit:
    """Return the closest hit (or with `any_hit` 1 some hit) in all worlds that a camera sees."""
    excluded = Excluded()
    excluded.body = -1
    excluded.root = -1
    result = ViewHit()
    result.hit = no_hit(max_distance)
    best = no_hit(max_distance)
    best = trace_group(
        scene, scene.node_start.shape[0] - 2, origin, direction, excluded, scene.shape_body, best, any_hit
    )
    offset = wp.vec3(0.0, 0.0, 0.0)
    inverse = wp.vec3(safe_inverse(direction[0]), safe_inverse(direction[1]), safe_inverse(direction[2]))
    for entry in range(view.view_start[camera], view.view_start[camera + 1]):
        if any_hit == 0 or best.shape < 0:
            distance = best.distance
            moved = view.view_offset[entry]
            world = view.view_world[entry]
            # A ray misses most of a hundred worlds; the box around a world shows that without a traversal.
            root = scene.node_start[world] + 1
            start = origin - moved
            enter = enter_box(scene.node_lower[root], scene.node_upper[root], start, inverse, distance)
            if enter < MISS or scene.plane_start[world + 1] > scene.plane_start[world]:
                found = trace_group(scene, world, start, direction, excluded, scene.shape_body, best, any_hit)
                if found.shape != best.shape or found.distance != distance:
                    offset = moved
                best = found
    result.hit = best
    result.offset = offset
    return result


@wp.func
def background(light: Light, direction: wp.vec3) -> wp.vec3:
    """Return the colour of the background, in linear light."""
    share = wp.clamp(1.6 * wp.dot(direction, light.up), 0.0, 1.0)
    return to_linear((1.0 - share) * light.horizon_color + share * light.zenith_color)


@wp.func
def grid_strength(position: float, spacing: float, width: float, footprint: float) -> float:
    """Return how much of a pixel's footprint along one axis a line covers, from 0 to 1."""
    cell = position / spacing
    away = spacing * wp.abs(cell - wp.floor(cell + 0.5))
    blur = wp.max(footprint, 1.0e-5)
    edge = wp.clamp((0.5 * (width + blur) - away) / blur, 0.0, 1.0)
    return edge * wp.min(1.0, width / blur)


@wp.func
def paint_grid(light: Light, color: wp.vec3, x: float, y: float, footprint: float) -> wp.vec3:
    """Return the colour of an endless plane with lines, wider ones every ten."""
    result = color
    if light.grid_spacing > 0.0:
        wide = light.grid_spacing
        fine = 0.1 * wide
        line = wp.max(
            grid_strength(x, wide, 0.014 * wide, footprint), grid_strength(y, wide, 0.014 * wide, footprint)
        )
        thin = wp.max(
            grid_strength(x, fine, 0.005 * wide, footprint), grid_strength(y, fine, 0.005 * wide, footprint)
        )
        thin = thin * wp.clamp(1.0 - footprint / (0.5 * fine), 0.0, 1.0)
        result = color * (1.0 - 0.42 * line - 0.13 * thin * (1.0 - line))
    return result


@wp.func
def around(normal: wp.vec3, u: float, v: float) -> wp.vec3:
    """Return a direction on the side of a normal, distributed as the cosine, from two numbers from 0 to 1."""
    angle = 6.2831853 * v
    radius = wp.sqrt(u)
    axis = wp.vec3(1.0, 0.0, 0.0)
    if wp.abs(normal[0]) > 0.7:
        axis = wp.vec3(0.0, 1.0, 0.0)
    side = wp.normalize(wp.cross(normal, axis))
    other = wp.cross(normal, side)
    return wp.normalize(
        radius * wp.cos(angle) * side + radius * wp.sin(angle) * other + wp.sqrt(1.0 - u) * normal
    )


@wp.func
def shade(
    scene: RayScene,
    view: View,
    light: Light,
    camera: int,
    surface: Surface,
    point: wp.vec3,
    distance: float,
    direction: wp.vec3,
    chance: wp.vec4,
) -> wp.vec3:
    """Return the light that a surface sends to the eye."""
    lift = wp.max(LIFT * distance, LIFT_MIN) + 1.0e-6 * wp.length(point)
    start = point + lift * surface.flat_normal
    normal = surface.normal
    sun = light.sun_direction
    facing = wp.dot(normal, sun)
    lit = float(0.0)
    if facing > 0.0 and wp.dot(surface.flat_normal, sun) > 0.0:
        lit = 1.0
        if light.shadows == 1:
            # A point on the sun's disc, as wide as `sun_spread`.
            angle = 6.2831853 * chance[1]
            radius = light.sun_spread * wp.sqrt(chance[0])
            axis = wp.vec3(1.0, 0.0, 0.0)
            if wp.abs(sun[0]) > 0.7:
                axis = wp.vec3(0.0, 1.0, 0.0)
            side = wp.normalize(wp.cross(sun, axis))
            other = wp.cross(sun, side)
            to_sun = wp.normalize(sun + radius * (wp.cos(angle) * side + wp.sin(angle) * other))
            blocked = trace_view(scene, view, camera, start, to_sun, 1.0e6, 1)
            if blocked.hit.shape >= 0:
                lit = 0.0
    share = 0.5 + 0.5 * wp.dot(normal, light.up)
    ambient = share * light.sky_color + (1.0 - share) * light.bounce_color
    if light.occlusion_distance > 0.0:
        way = around(normal, chance[2], chance[3])
        if wp.dot(way, surface.flat_normal) > 0.0:
            near = trace_view(scene, view, camera, start, way, light.occlusion_distance, 0)
            if near.hit.shape >= 0:
                # Near surfaces darken more than distant ones.
                open = near.hit.distance / light.occlusion_distance
                ambient = ambient * (0.12 + 0.88 * open)
    result = wp.cw_mul(surface.color, lit * facing * light.sun_color + ambient)
    if lit > 0.0 and surface.specular > 0.0:
        half = wp.normalize(sun - direction)
        sharpness = 6.0 + 200.0 * surface.shininess * surface.shininess
        gleam = wp.pow(wp.max(wp.dot(normal, half), 0.0), sharpness) * (0.5 + 0.02 * sharpness)
        result += (0.09 * surface.specular * gleam * facing * lit) * light.sun_color
    return result + surface.emission * surface.color


@wp.func
def ray_color(
    scene: RayScene,
    surfaces: RayAppearance,
    view: View,
    light: Light,
    camera: int,
    eye: wp.vec3,
    direction: wp.vec3,
    pixel_angle: float,
    chance: wp.vec4,
) -> wp.vec3:
    """Return the linear light that comes along a ray to the eye."""
    color = wp.vec3(0.0, 0.0, 0.0)
    through = float(1.0)
    start = eye
    passed = float(0.0)
    layer = int(0)
    while layer < LAYERS and through > 0.01:
        layer += 1
        found = trace_view(scene, view, camera, start, direction, MISS, 0)
        hit = found.hit
        on_floor = bool(False)
        rise, height = wp.dot(direction, light.up), wp.dot(start, light.up)
        if light.has_floor == 1 and rise < -1.0e-6 and height > light.floor_height:
            distance = (light.floor_height - height) / rise
            if distance < hit.distance:
                on_floor = True
                hit.distance = distance
        if hit.shape < 0 and not on_floor:
            color += through * background(light, direction)
            through = 0.0
        else:
            surface = Surface()
            endless = bool(on_floor)
            point = start + hit.distance * direction
            total = passed + hit.distance
            if on_floor:
                surface.color = to_linear(light.floor_color)
                surface.normal = light.up
                surface.flat_normal = surface.normal
                surface.alpha = 1.0
            else:
                surface = surface_at(scene, surfaces, hit, start - found.offset, direction)
                size = scene.shape_scale[hit.shape]
                if scene.shape_type[hit.shape] == GeoType.PLANE and (size[0] <= 0.0 or size[1] <= 0.0):
                    endless = True
                    given = surfaces.shape_color[hit.shape]
                    if (
                        surfaces.shape_appearance[hit.shape] < 0
                        and wp.length_sq(given - light.plain_color) < 1.0e-8
                    ):
                        surface.color = to_linear(light.floor_color)
                    surface.specular = 0.0
            fade = float(0.0)
            if endless:
                textured = bool(False)
                side = wp.vec3(light.up[2], light.up[0], light.up[1])
                local = wp.vec3(wp.dot(point, side), wp.dot(point, wp.cross(light.up, side)), 0.0)
                if not on_floor:
                    local = (point - found.offset - scene.shape_position[hit.shape]) * scene.shape_rotation[
                        hit.shape
                    ]
                    appearance_index = surfaces.shape_appearance[hit.shape]
                    if appearance_index >= 0:
                        textured = surfaces.appearance_texture[appearance_index] >= 0
                if not textured:
                    slant = wp.max(wp.abs(wp.dot(direction, surface.normal)), 0.02)
                    surface.color = paint_grid(
                        light, surface.color, local[0], local[1], total * pixel_angle / wp.sqrt(slant)
                    )
                if light.fade_distance > 0.0:
                    far = total / light.fade_distance
                    fade = 1.0 - wp.exp(-far * far)
            shaded = shade(scene, view, light, camera, surface, point, total, direction, chance)
            shaded = (1.0 - fade) * shaded + fade * background(light, direction - rise * light.up)
            color += (through * surface.alpha) * shaded
            through = through * (1.0 - surface.alpha)
            step = hit.distance + wp.max(LIFT * total, LIFT_MIN) + 1.0e-6 * wp.length(point)
            start = start + step * direction
            passed += step
    return color


@wp.func
def to_display(value: float) -> wp.uint32:
    """Return linear light as a display value of 8 bits; bright light is compressed instead of cut off."""
    bright = value
    if bright > 0.8:
        bright = 0.8 + 0.2 * (1.0 - wp.exp(-(bright - 0.8) / 0.2))
    return wp.uint32(255.0 * wp.pow(wp.clamp(bright, 0.0, 1.0), 1.0 / 2.2) + 0.5)


@wp.kernel(enable_backward=False, module="pluriverse.render.raycast.shading")
def render_pixel(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    camera_start: wp.array[int],  # [world + 1] first camera of each world
    scene: RayScene,
    surfaces: RayAppearance,
    view: View,
    light: Light,
    first_pixel: int,
    samples: int,  # rays per pixel
    # out
    image: wp.array3d[wp.uint32],  # [camera, row, column] red in the lowest byte
):
    """Render one pixel of one camera."""
    slot, index, offset = wp.tid()
    world = worlds[slot]
    if world < 0:
        return
    camera = camera_start[world] + index
    pixel = first_pixel + offset
    if camera >= camera_start[world + 1] or pixel >= view.width * view.height:
        return  # this world has fewer cameras than others
    row = pixel / view.width
    column = pixel - row * view.width
    height = float(view.height)
    width = float(view.width)
    pixel_angle = 2.0 * view.tangent[camera] / height
    total = wp.vec3(0.0, 0.0, 0.0)
    count = int(0)
    low = float(1.0e30)
    high = float(-1.0e30)
    going = bool(True)
    state = wp.rand_init(0, pixel)
    shift = wp.vec4(wp.randf(state), wp.randf(state), wp.randf(state), wp.randf(state))
    while going:
        # Four numbers from 0 to 1 that fill their cube evenly over the rays of a pixel, shifted at random
        # from pixel to pixel: the additive recurrence of [Roberts2018].
        number = float(count)
        chance = wp.vec4(
            wp.frac(shift[0] + 0.8566748838545029 * number),
            wp.frac(shift[1] + 0.7338918566271260 * number),
            wp.frac(shift[2] + 0.6287067210378087 * number),
            wp.frac(shift[3] + 0.5385972572236101 * number),
        )
        # The same in two dimensions, over the pixel; a single ray goes through its middle.
        x = float(0.5)
        y = float(0.5)
        if samples > 1:
            x = wp.frac(0.5 + 0.7548776662 * float(count))
            y = wp.frac(0.5 + 0.5698402910 * float(count))
        across = (2.0 * (float(column) + x) / width - 1.0) * view.tangent[camera] * width / height
        up = (1.0 - 2.0 * (float(row) + y) / height) * view.tangent[camera]
        direction = wp.normalize(view.camera_rotation[camera] * wp.vec3(across, up, -1.0))
        color = ray_color(
            scene, surfaces, view, light, camera, view.camera_position[camera], direction, pixel_angle, chance
        )
        total += color
        count += 1
        brightness = wp.pow(wp.max((color[0] + color[1] + color[2]) / 3.0, 0.0), 0.4545)
        low = wp.min(low, brightness)
        high = wp.max(high, brightness)
        if count >= samples or (count == FIRST_SAMPLES and high - low < SAME_BRIGHTNESS):
            going = False
    total = total / float(count)
    image[camera, row, column] = (
        to_display(total[0])
        | (to_display(total[1]) << wp.uint32(8))
        | (to_display(total[2]) << wp.uint32(16))
        | (wp.uint32(255) << wp.uint32(24))
    )


def render_pixels(
    worlds: wp.array[int],
    camera_start: wp.array[int],
    camera_count_max: int,
    scene: RayScene,
    surfaces: RayAppearance,
    view: View,
    light: Light,
    image: wp.array,
    *,
    samples: int,
    first_pixel: int = 0,
    pixel_count: int | None = None,
) -> None:
    """Render the cameras of worlds; `first_pixel` and `pixel_count` choose part of each picture."""
    count = view.width * view.height - first_pixel if pixel_count is None else pixel_count
    launch_kernel(
        render_pixel,
        dim=(worlds.size, camera_count_max, count),
        inputs=[worlds, camera_start, scene, surfaces, view, light, first_pixel, samples],
        outputs=[image],
        device=image.device,
    )
