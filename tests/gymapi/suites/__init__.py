"""Tasks written in the way of suites for the actor API: with its imports, habits and shortcuts."""
