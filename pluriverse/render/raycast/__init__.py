"""Ray caster: the closest shape along a ray, separately in every world."""
