"""SolverSAP: convex contact with compliance and stiction, solved to its minimum in every step."""

from pluriverse.solvers.sap.options import SapOptions
from pluriverse.solvers.sap.solver import SolverSAP as SolverSAP

__all__ = ["SapOptions"]
