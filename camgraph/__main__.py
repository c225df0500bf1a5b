"""`python -m camgraph`, and the command `camgraph`."""

from __future__ import annotations


def main() -> None:
    """The command line."""
    from tools.cli import main as command  # noqa: PLC0415 - only when the packages are known to be ours

    command()


if __name__ == "__main__":
    main()
