"""Solvers: everything that moves a state by a time step."""

from pluriverse.solvers.base import SolverBase

__all__ = ["SolverBase"]
