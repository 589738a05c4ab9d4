"""One module per engine, each a program that measures it on one scene and prints the result as JSON."""
