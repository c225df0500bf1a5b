"""Commands of camgraph in the process of the test."""

from __future__ import annotations

from click.testing import CliRunner, Result

from camgraph.tools.cli import main


def model_command(*arguments: object) -> Result:
    """Run `camgraph model ...`."""
    return CliRunner().invoke(main, ["model", *map(str, arguments)])
