"""Values of a model's metadata that were written as Python literals, as Ultralytics writes them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

MOST_CHARACTERS = 256 * 1024
"""The names of 10,000 classes. Reading so much takes under a second and 130 MB; it grows with the length."""


def metadata_literal(metadata: Mapping[str, str], key: str) -> object:
    """The value of this key; None if there is none, or no literal: the model's maker may have put any text there.

    Do not change it: later callers get the same object.
    """
    text = metadata.get(key, "")
    return _read(text) if len(text) <= MOST_CHARACTERS else None


@lru_cache(maxsize=8)
def _read(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
