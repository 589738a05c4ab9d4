"""Selection: views of articulations, bodies, joints, shapes or worlds as arrays, selected by their labels.

A view reads and writes the arrays of a model, a state or a control on the device, for any mix of worlds.
"""

from pluriverse.selection.articulation_view import ArticulationView
from pluriverse.selection.entity_views import BodyView, JointView, ShapeView, WorldView
from pluriverse.selection.view import View

__all__ = ["ArticulationView", "BodyView", "JointView", "ShapeView", "View", "WorldView"]
