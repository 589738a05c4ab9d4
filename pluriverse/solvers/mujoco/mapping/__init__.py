"""What MuJoCo's models are made of: groups of worlds, their compiled models, and their fields."""
