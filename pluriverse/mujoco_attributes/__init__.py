"""The namespace `mujoco`: which MuJoCo-specific properties a builder keeps, and how USD prims give them."""
