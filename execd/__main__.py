"""`python -m execd`: the same as the `execd` console script."""

from execd.cli import main

if __name__ == "__main__":
    main()
