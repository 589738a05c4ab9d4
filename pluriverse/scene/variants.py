"""The `variants` block of scene files: entities that are something else in different worlds."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from pluriverse.scene.mapping import SceneMapping
from pluriverse.scene.values import Name, Number, Vector

if TYPE_CHECKING:
    from pluriverse.variants import VariantEntityCfg, VariantScene


class InitialStateSection(SceneMapping):
    """Initial state of an entity; as authored where not given."""

    pos: Vector | None = Field(default=None, description="m")
    rot: tuple[Number, Number, Number, Number] | None = Field(default=None, description="quaternion xyzw")
    lin_vel: Vector | None = Field(default=None, description="m/s")
    ang_vel: Vector | None = Field(default=None, description="rad/s")
    joint_pos: dict[Name, Number | list[Number]] = Field(default={}, description="by regular expression")
    joint_vel: dict[Name, Number | list[Number]] = Field(default={}, description="by regular expression")


class EntitySection(SceneMapping):
    """An entity with its variants; `variants` is added where the content of worlds is known."""

    assignment: dict[Name, float] | list[int] | None = Field(
        default=None, description="weights by variant, or a list of indices, begun again where it ends"
    )
    init_state: InitialStateSection = InitialStateSection()
    mode: Literal["any", "single_layout"] = "any"

    def config(self, builders: Mapping[str, Any]) -> "VariantEntityCfg":
        """Return the configuration of the entity, given a builder for each of its variants."""
        from pluriverse.variants import InitialStateCfg, VariantEntityCfg, VariantMode

        assignment: Any = self.assignment
        if isinstance(self.assignment, list):
            indices = self.assignment
            assignment = lambda count: [indices[world % len(indices)] for world in range(count)]  # noqa: E731
        return VariantEntityCfg(
            variants=dict(builders),
            assignment=assignment,
            mode=VariantMode(self.mode),
            init_state=InitialStateCfg(**self.init_state.given()),
        )


class VariantSettings(SceneMapping):
    """Keys for all entities of the block."""

    reassignable: bool = False
    prepared_worlds: Literal["own", "shared"] = "own"
    share_layouts: bool = True
    seed: int = 0


def build_variant_scene(
    settings: VariantSettings,
    content: Any,
    entities: "Mapping[str, VariantEntityCfg]",
    *,
    world_count: int,
    worlds: range | None,
    gravity: Any,
    add_shared: Callable[[Any], None],
    device: Any,
) -> "VariantScene":
    """Return the worlds of a scene file with a `variants` block.

    Args:
        settings: Settings of the block.
        content: Builder of the content of every world apart from the entities.
        entities: The entities of the block.
        world_count: Number of worlds.
        worlds: The worlds to build; all if None.
        gravity: Gravity of all of them [m/s²].
        add_shared: Adds the global entities to a builder.
        device: Device of the model.

    Raises:
        ValueError: If an entity or its assignment does not fit.
    """
    from pluriverse.variants import EntityCfg, PreparedWorlds, SceneCfg, make_scene

    all_entities: dict[str, EntityCfg] = {}
    if content.body_count + content.shape_count:
        all_entities[""] = EntityCfg(spec_fn=content)
    return make_scene(
        SceneCfg(
            num_envs=world_count,
            entities=all_entities | dict(entities),
            ground_height=None,
            gravity=gravity,
            reassignable=settings.reassignable,
            prepared_worlds=PreparedWorlds(settings.prepared_worlds),
            share_layouts=settings.share_layouts,
            seed=settings.seed,
        ),
        device=device,
        add_shared=add_shared,
        environments=worlds,
    )
