"""Learning: PPO of rsl_rl on tasks, checkpoints, and policies that run without PyTorch."""
