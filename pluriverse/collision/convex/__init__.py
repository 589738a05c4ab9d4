"""Colliders of convex shapes: spheres, capsules, boxes, cylinders, cones, ellipsoids, hulls, half spaces."""
