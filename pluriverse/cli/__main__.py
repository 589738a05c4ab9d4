"""`python -m pluriverse.cli`: the `pluriverse` command."""

from pluriverse.cli import main

main()
