"""Assembly of models on the host: the tables of a builder, and one module of functions per concept.

`pluriverse.ModelBuilder` offers them as its methods. `ShapeConfig` and `JointDofConfig` are public as
`pluriverse.ShapeConfig` and so on.
"""

from pluriverse.builder.joint_config import JointDofConfig as JointDofConfig
from pluriverse.builder.shape_config import ShapeConfig as ShapeConfig

__all__: list[str] = []
