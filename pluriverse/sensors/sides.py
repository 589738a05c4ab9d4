"""Sides: the shapes that a sensor of contacts or distances concerns."""

import warp as wp

from pluriverse.builder.sensor_sides import SensorSide
from pluriverse.model import Topology
from pluriverse.sensors.measure import in_subtree


@wp.func
def carries(topology: Topology, world: int, carrier: int, body: int) -> bool:
    """Return whether a body (-1: the world) is another body of its world, or an ancestor of it."""
    if carrier < 0 or carrier == body:
        return True
    if body < 0:
        return False
    template = topology.world_template[world]
    first_node = topology.template_node[template]
    local = topology.template_body[template] - topology.world_body[world]
    root = topology.body_node[local + carrier]
    node = topology.body_node[local + body]
    return node >= root and in_subtree(topology, first_node, node, root)


@wp.func
def is_of_side(
    topology: Topology, world: int, side: int, side_shape: int, side_body: int, shape: int, body: int
) -> bool:
    """Return whether a shape of a body (-1: the world) belongs to a side; a zone leaves that open."""
    result = bool(True)
    if side == SensorSide.SHAPE:
        result = shape == side_shape
    elif side == SensorSide.BODY:
        result = body == side_body
    elif side == SensorSide.SUBTREE:
        result = carries(topology, world, side_body, body)
    return result
