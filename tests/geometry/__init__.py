"""Tests of meshes, hulls and mass properties."""
