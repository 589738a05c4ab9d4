"""Adapters: environments in the interfaces of learning libraries, each loaded with its library."""
