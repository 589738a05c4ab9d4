"""Spatial algebra, rotations and small dense linear algebra for kernels."""
