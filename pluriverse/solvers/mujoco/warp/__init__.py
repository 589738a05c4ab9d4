"""MuJoCo Warp, a model and data per group."""
