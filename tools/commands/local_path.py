"""The type of arguments and options that are paths of this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from camgraph.pipeline.system.paths import why_no_path


class LocalPath(click.Path):
    """Refuses an address while it is a text: a `Path` of it would show its password, and even make folders."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Raises click.BadParameter."""
        problem = why_no_path(value) if isinstance(value, str) else ""
        if problem:
            self.fail(problem, param, ctx)
        return super().convert(value, param, ctx)
