"""Springs of any stiffness: forces of a step that are those at its end, as its joints respond to them.

They are stages of a simulation (`Simulation.add_stage`), for both solvers.
"""

__all__: list[str] = []
