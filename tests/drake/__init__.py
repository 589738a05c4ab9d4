"""The same scenes in Drake and in Pluriverse."""
