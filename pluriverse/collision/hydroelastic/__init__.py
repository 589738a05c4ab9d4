"""Colliders of hydroelastic shapes: the pressure on the patch between two shapes, as contacts."""
