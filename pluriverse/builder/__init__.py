"""What a user assembles on the host.

`ModelBuilder`, `ShapeConfig` and `JointDofConfig` are public as `pluriverse.ModelBuilder` and so on.
"""

from pluriverse.builder.builder import ModelBuilder as ModelBuilder
from pluriverse.builder.joint_config import JointDofConfig as JointDofConfig
from pluriverse.builder.shape_config import ShapeConfig as ShapeConfig

__all__: list[str] = []
