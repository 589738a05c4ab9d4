"""The scene document, schema version 1.

The models say which keys a mapping may hold and check every value on its own. What a value refers to (a
body, a joint, a file) is checked later, by the part of the loader that looks it up.
"""

from pathlib import PurePath
from typing import Any, Literal

from pydantic import Field, GetJsonSchemaHandler, field_validator, model_validator
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_core import CoreSchema

from pluriverse.scene.assets import ASSET_TYPES, AnyAsset
from pluriverse.scene.bodies import Body
from pluriverse.scene.constraints import AnyConstraint
from pluriverse.scene.joints import Articulation, InitialJointQ, Joint, JointDefaults
from pluriverse.scene.mapping import SceneMapping
from pluriverse.scene.observers import SceneCamera, Sensor
from pluriverse.scene.post_build import OPERATIONS, AnyOperation
from pluriverse.scene.randomize import RandomizeSection
from pluriverse.scene.shapes import ShapeConfiguration
from pluriverse.scene.terrain import AnyTerrain
from pluriverse.scene.values import Count, Gravity, Name, NotNegative, Number, Positive, Vector
from pluriverse.scene.variants import EntitySection, VariantSettings

SCHEMA_VERSION = 1

DT_DEFAULT = 0.003
"""Time step [s] of a scene that names none."""


class SolverOptions(SceneMapping):
    """Keyword arguments of `SolverSAP`; their values are checked there."""

    max_rigid_contact: Count | None = None
    fallback_mu: Number | None = None
    fallback_stiffness: Number | None = None
    contact_beta: Number | None = None
    contact_sigma: Number | None = None
    contact_tau_d: Number | None = None
    block_size: Count | None = None
    diag_shift: Number | None = None
    max_iterations: Count | None = None
    optimality_abs_tol: Number | None = None
    optimality_rel_tol: Number | None = None
    cost_abs_tol: Number | None = None
    cost_rel_tol: Number | None = None
    line_search_max_iterations: Count | None = None
    armijo_c: Number | None = None
    rho: Number | None = None
    line_search_relative_slop: Number | None = None
    line_search_variant: str | None = None
    contact_preset_variant: str | None = None
    use_f64_boundary_pose: bool | None = None
    free_motion_solve_precision: str | None = None
    contact_solve_precision: str | None = None
    contact_linear_solve_precision: str | None = None
    sap_contact_weight_precision: str | None = None
    contact_weight_mode: str | None = None
    contact_point_mode: str | None = None
    friction_combination: str | None = None
    position_integration: str | None = None
    restitution_threshold: Number | None = None
    resting_depth_limit: Number | None = None
    torsional_friction: bool | None = None
    capture_contact_jacobian_snapshots: bool | None = None
    collect_iteration_stats: bool | None = None
    check_line_search_errors: bool | None = None
    graph_conditional: bool | None = None
    enforce_velocity_limit: bool | None = None
    approach_damping: bool | None = None
    recovery_limited: bool | None = None
    friction_law: str | None = None
    static_substep: bool | None = None
    static_substep_iterations: Count | None = None
    static_substep_line_search_iterations: Count | None = None


class SimulationSection(SceneMapping):
    """How the scene is run."""

    dt: Positive = Field(default=DT_DEFAULT, description="s")
    num_worlds: Count | None = None
    max_rigid_contact: Count | None = Field(
        default=None, description="contacts per world; chosen per scene if not given"
    )
    solver: SolverOptions = SolverOptions()


class BuilderDefaults(SceneMapping):
    """Defaults of inline joints and of shapes."""

    joint: JointDefaults = JointDefaults()
    shape: ShapeConfiguration = ShapeConfiguration()


class BuilderSection(SceneMapping):
    """Settings of the builder before anything is added."""

    rigid_gap: NotNegative | None = Field(default=None, description="m")
    gravity: Gravity | None = Field(default=None, description="m/s², a number along +z or [x, y, z]")
    default_body_armature: NotNegative | None = Field(default=None, description="kg·m²")
    register_mujoco_custom_attributes: bool = Field(
        default=False, description="keep what assets say about MuJoCo only, for SolverMuJoCo"
    )
    defaults: BuilderDefaults = BuilderDefaults()


class GroundSection(SceneMapping):
    """The plane under all worlds, or terrain in its place; `true` and `false` alone switch it on and off."""

    enabled: bool = True
    height: Number = 0.0
    label: Name = "ground_plane"
    cfg: ShapeConfiguration | None = None
    terrain: AnyTerrain | None = Field(default=None, description="what takes the place of the plane")

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"type": "boolean"}, handler(core_schema)]}


class ReplicateSection(SceneMapping):
    """Number of copies of the world, and their distance."""

    num_worlds: Count | None = None
    spacing: Vector | None = None
    gravities: list[Gravity] = Field(
        default=[], description="gravity of the worlds in turn, begun again where there are more, m/s²"
    )


class ControlSection(SceneMapping):
    """A recorded control sequence."""

    source: Name
    loop: bool | None = None


class WorldContent(SceneMapping):
    """Contents of one kind of world."""

    assets: list[AnyAsset] = Field(default_factory=list)
    bodies: list[Body] = Field(default_factory=list)
    joints: list[Joint] = Field(default_factory=list)
    articulations: list[Articulation] = Field(default_factory=list)
    initial_joint_q: list[InitialJointQ] = Field(default_factory=list)
    post_build: list[AnyOperation] = Field(default_factory=list)
    constraints: list[AnyConstraint] = Field(default_factory=list)
    sensors: list[Sensor] = Field(default_factory=list)
    cameras: list[SceneCamera] = Field(default_factory=list)


CONTENT_FIELDS = tuple(WorldContent.model_fields)


class VariantContent(WorldContent):
    """One variant of an entity."""

    @model_validator(mode="after")
    def _some_content(self) -> "VariantContent":
        if not (self.assets or self.bodies):
            raise ValueError("this variant is empty; give 'assets' or 'bodies'")
        if self.sensors or self.cameras:
            raise ValueError("variants have no 'sensors' or 'cameras' of their own; put them into files")
        return self


class VariantEntity(EntitySection):
    """An entity that is something else in different worlds."""

    variants: dict[Name, VariantContent] = Field(min_length=1)


class VariantsSection(VariantSettings):
    """Entities that are something else in different worlds."""

    entities: dict[Name, VariantEntity] = Field(min_length=1)


class WorldKind(WorldContent):
    """One kind of world of a scene that holds several."""

    name: Name | None = None
    count: Count = 1
    scene: Name | None = Field(default=None, description="another scene file, relative to this one")
    gravity: Gravity | None = None
    gravities: list[Gravity] = Field(
        default=[], description="gravity of these worlds in turn, begun again where there are more, m/s²"
    )
    max_rigid_contact: Count | None = None

    @model_validator(mode="after")
    def _content_or_scene(self) -> "WorldKind":
        content = [field for field in CONTENT_FIELDS if getattr(self, field)]
        if self.scene is not None and content:
            raise ValueError(
                f"'scene' brings all content of these worlds; move '{content[0]}' to {self.scene}"
            )
        if self.gravity is not None and self.gravities:
            raise ValueError("'gravity' and 'gravities' exclude each other; keep one")
        if self.scene is None and not (self.assets or self.bodies):
            raise ValueError("these worlds are empty; give 'scene', 'assets' or 'bodies'")
        return self

    def kind_name(self, index: int) -> str:
        """Return the name under which tables list these worlds."""
        if self.name:
            return self.name
        return PurePath(self.scene).stem if self.scene else f"kind_{index}"


class Scene(WorldContent):
    """A scene file."""

    schema_version: Literal[1] = 1
    name: str | None = None
    simulation: SimulationSection = SimulationSection()
    builder: BuilderSection = BuilderSection()
    ground: GroundSection = GroundSection()
    replicate: ReplicateSection = ReplicateSection()
    control: ControlSection | None = None
    worlds: list[WorldKind] = Field(default_factory=list)
    randomize: RandomizeSection | None = None
    variants: VariantsSection | None = None

    @field_validator("ground", mode="before")
    @classmethod
    def _ground_switch(cls, value: Any) -> Any:
        """`true` and `false` stand for the default plane and for none."""
        return {"enabled": value} if isinstance(value, bool) else value

    @model_validator(mode="after")
    def _kinds_or_content(self) -> "Scene":
        if self.worlds:
            for field in CONTENT_FIELDS:
                if getattr(self, field):
                    raise ValueError(
                        f"a scene with 'worlds' keeps its content there; move '{field}' into its worlds"
                    )
        for field in ("worlds", "control", "sensors", "cameras"):
            if self.variants is not None and getattr(self, field):
                raise ValueError(f"'variants' and '{field}' exclude each other; keep one")
        if self.variants is not None and self.replicate.gravities:
            raise ValueError("'variants' and 'replicate.gravities' exclude each other; use 'randomize'")
        if self.variants is not None and any(self.replicate.spacing or ()):
            raise ValueError("worlds with 'variants' all stand at the origin; remove 'replicate.spacing'")
        return self


class _SceneJsonSchema(GenerateJsonSchema):
    """Leaves out defaults that JSON cannot hold, such as the identity transform."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012 (as in Pydantic)
        "skipped-choice",
        "non-serializable-default",
    }

    def tagged_union_schema(self, schema: Any) -> JsonSchemaValue:
        """Return what a mapping of one of several kinds may be, each with the value that tells its kind."""
        members = []
        for tag, choice in schema["choices"].items():
            if tag == "unsupported":
                continue  # only the loader knows it, and can list the alternatives
            kind: JsonSchemaValue
            member: JsonSchemaValue = self.generate_inner(choice)
            if tag in ASSET_TYPES:  # in any case
                spellings = [tag, tag.upper(), tag.capitalize()]
                kind = {"properties": {"type": {"enum": spellings}}, "required": ["type"]}
                member = {"allOf": [member, kind]}
            elif tag in OPERATIONS:
                kind = {"properties": {"op": {"const": str(tag).split()[0]}}, "required": ["op"]}
                member = {"allOf": [member, kind]}
            members.append(member)
        return {"anyOf": members}


def scene_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of scene files, for editors."""
    return Scene.model_json_schema(by_alias=False, schema_generator=_SceneJsonSchema)
