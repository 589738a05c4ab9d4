"""Colliders of surfaces: triangle meshes and height fields."""
