"""Tests of the builder."""
