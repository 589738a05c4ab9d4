"""MuJoCo's C engine, called from kernels."""
