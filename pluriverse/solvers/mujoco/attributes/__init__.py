"""What only MuJoCo knows, as custom attributes of the namespace `mujoco`."""
