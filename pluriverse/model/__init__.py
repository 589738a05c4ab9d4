"""What is simulated: Model, State, Control, Contacts, and how worlds are structured and batched.

`Model`, `State`, `Control` and `Contacts` are public as `pluriverse.Model` and so on.
"""

from pluriverse.model.batches import Batch
from pluriverse.model.contacts import Contacts as Contacts
from pluriverse.model.control import Control as Control
from pluriverse.model.model import Model as Model
from pluriverse.model.state import State as State
from pluriverse.model.topology import Template, Topology

__all__ = ["Batch", "Template", "Topology"]
