"""Tasks that come with the package, each in a module of its own that loads on first use."""
