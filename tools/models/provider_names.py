"""Providers as they are named on the command line."""

from __future__ import annotations

from typing import cast, get_args

from camgraph.pipeline.errors import UserError
from camgraph.stages.people.inference.engines.engine import ProviderName


def provider_names(text: str) -> tuple[ProviderName, ...]:
    """With commas between them. Raises UserError if there is no such provider."""
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in get_args(ProviderName):
            raise UserError(
                f"--providers {text}: there is no `{name}`; expected {', '.join(get_args(ProviderName))}",
                error_id="name-unknown",
            )
    return cast("tuple[ProviderName, ...]", names)
