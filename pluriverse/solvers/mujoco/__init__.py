"""SolverMuJoCo: worlds stepped by MuJoCo on a CPU, and by MuJoCo Warp on a GPU."""
