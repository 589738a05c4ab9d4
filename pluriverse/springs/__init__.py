"""Springs of any stiffness: forces of a step that are those at its end, as its joints respond to them.

`SolverSAP` takes them as terms of its objective. For other solvers they are stages of a simulation, whose
forces do not know of contacts (`Simulation.add_stage`).
"""

__all__: list[str] = []
