"""Ray caster: the closest shape along a ray, in every world by itself."""
