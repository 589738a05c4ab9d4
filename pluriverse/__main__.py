"""`python -m pluriverse`: the `pluriverse` command."""

from pluriverse.cli import main

if __name__ == "__main__":
    main()
