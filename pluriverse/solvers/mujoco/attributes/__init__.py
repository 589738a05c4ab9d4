"""MuJoCo-specific properties, as custom attributes of the namespace `mujoco`."""
