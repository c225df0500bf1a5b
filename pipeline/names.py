"""What a graph, a run, a stage, a camera and a port may be called: their names become parts of paths and addresses."""

from __future__ import annotations

import re

NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_-]*$"
MAX_NAME = 40
"""With it the address of a process's socket still is shorter than the 107 characters that a socket's may have."""
A_NAME = f"a name of letters, digits, `_` and `-` (at most {MAX_NAME} characters)"


def is_name(text: str) -> bool:
    """Whether something may be called so."""
    return len(text) <= MAX_NAME and re.fullmatch(NAME_PATTERN, text) is not None
