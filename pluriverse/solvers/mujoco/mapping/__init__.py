"""Mapping to MuJoCo: groups of worlds, their compiled models, and their fields."""
