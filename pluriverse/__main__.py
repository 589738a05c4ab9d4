"""`python -m pluriverse`: the `pluriverse` command."""

from pluriverse.cli import main

main()
