"""Which colliders of a stage do not collide: collision groups, filtered pairs, articulations."""

from itertools import combinations
from typing import Any

from pluriverse.importers.description import WORLD, RobotDescription, ShapeDescription
from pluriverse.importers.options import UsdSettings
from pluriverse.importers.report import ImportReport
from pluriverse.importers.usd_bodies import UsdBody
from pluriverse.importers.usd_source import UsdSource, authored

SELF_COLLISION = ("newton:selfCollisionEnabled", "physxArticulation:enabledSelfCollisions")


def add_filters(
    robot: RobotDescription,
    source: UsdSource,
    bodies: dict[str, UsdBody],
    shapes: dict[str, tuple[Any, list[ShapeDescription]]],
    options: UsdSettings,
    report: ImportReport,
) -> None:
    """Add the collision rules of the stage to `robot`.

    `shapes` are its colliders by path, as parsed and as shapes.
    """
    _filter_groups(source, shapes)
    _filter_pairs(robot, source, bodies, shapes, report)
    _filter_articulations(robot, source, bodies, options)


def _filter_groups(source: UsdSource, shapes: dict[str, tuple[Any, list[ShapeDescription]]]) -> None:
    """Give the shapes bit masks by which those of filtered groups do not collide.

    Shapes in the same set of groups share a bit; two sets collide unless a group of one filters one of the
    other. A group with inverted filters collides only with the groups that it names.
    """
    groups = dict(source.objects("CollisionGroup"))
    if not groups:
        return

    def alike(path: str) -> set[str]:
        merged = groups[path].mergeGroupName
        return {
            other
            for other, its in groups.items()
            if other == path or (merged and its.mergeGroupName == merged)
        }

    rules = []  # groups, those that they name, whether they collide with these and nothing else
    for path, description in groups.items():
        named = {
            merged
            for other in description.filteredGroups
            if str(other) in groups
            for merged in alike(str(other))
        }
        # From the attribute: usd-core 25 leaves this field of the description undefined.
        inverted = bool(authored(source.stage.GetPrimAtPath(path), "physics:invertFilteredGroups"))
        rules.append((alike(path), named, inverted))

    def apart(first: frozenset[str], second: frozenset[str]) -> bool:
        """Return whether colliders of some groups do not collide with those of others, if any."""
        return any(bool(second & named) is not inverted for of, named, inverted in rules if first & of)

    sets: list[frozenset[str]] = []
    for description, _ in shapes.values():
        members = frozenset(map(str, description.collisionGroups))
        if members not in sets:
            sets.append(members)
    masks = [
        sum(
            1 << number
            for number, other in enumerate(sets)
            if not (apart(members, other) or apart(other, members))
        )
        for members in sets
    ]
    for description, parts in shapes.values():
        number = sets.index(frozenset(map(str, description.collisionGroups)))
        for shape in parts:
            shape.contype, shape.conaffinity = 1 << number, masks[number]


def _filter_pairs(
    robot: RobotDescription,
    source: UsdSource,
    bodies: dict[str, UsdBody],
    shapes: dict[str, tuple[Any, list[ShapeDescription]]],
    report: ImportReport,
) -> None:
    """Exclude the pairs in `physics:filteredPairs` of bodies, colliders and articulations."""
    members: dict[str, list[str]] = {}
    for path, body in bodies.items():
        members.setdefault(path, []).append(path)
        if body.articulation:
            members.setdefault(body.articulation, []).append(path)

    def colliders(path: str) -> list[ShapeDescription]:
        if path in shapes:
            return shapes[path][1]
        inside = set(members.get(path, []))
        return [
            shape
            for description, parts in shapes.values()
            if str(description.rigidBody) in inside
            for shape in parts
        ]

    owners = [(path, description.filteredCollisions) for path, (description, _) in shapes.items()]
    owners += [(path, body.description.filteredCollisions) for path, body in bodies.items()]
    owners += [(path, it.filteredCollisions) for path, it in source.objects("Articulation")]
    for path, targets in owners:
        for target in map(str, targets):
            if target not in shapes and target not in members:
                report.add(
                    "filteredPairs",
                    f"{path} with {target}",
                    "they may collide: the target is no body, collider or articulation that is imported",
                )
            robot.excluded_shapes += [
                (one, other) for one in colliders(path) for other in colliders(target) if one is not other
            ]


def _filter_articulations(
    robot: RobotDescription, source: UsdSource, bodies: dict[str, UsdBody], options: UsdSettings
) -> None:
    """Exclude the pairs of links of each tree whose links do not collide with each other."""
    trees: dict[int, list[int]] = {}
    tree_of_link: list[int] = []
    for index, link in enumerate(robot.links):
        tree_of_link.append(index if link.parent == WORLD else tree_of_link[link.parent])
        trees.setdefault(tree_of_link[index], []).append(index)
    settings: dict[int, bool] = {}
    for body in bodies.values():
        if body.articulation in source.prims:
            value = authored(source.prims[body.articulation], *SELF_COLLISION)
            if value is not None:
                settings[tree_of_link[body.link]] = bool(value)
    for tree, links in trees.items():
        if not settings.get(tree, options["enable_self_collisions"]):
            robot.excluded_pairs += combinations(links, 2)
