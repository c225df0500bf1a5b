"""Values of a model's metadata that were written as Python literals, as Ultralytics writes them."""

from __future__ import annotations

import ast
from collections.abc import Mapping


def metadata_literal(metadata: Mapping[str, str], key: str) -> object:
    """The value of this key; None where there is none, or no literal: it may be any text, of whoever made the model."""
    try:
        return ast.literal_eval(metadata.get(key, ""))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
