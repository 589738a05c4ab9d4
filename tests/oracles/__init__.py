"""Independent references in float64 NumPy, against which the package is tested."""
