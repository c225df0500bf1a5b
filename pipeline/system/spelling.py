"""Guesses the word that a mistyped one was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """The known word that is nearest to `word`, or none. One with the same letters in another order comes first."""
    swapped = [one for one in known if one != word and sorted(one) == sorted(word)]
    return swapped[:1] or difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean `x`?` for the known word that is nearest, or nothing."""
    near = nearest(word, known)
    return f"; did you mean `{near[0]}`?" if near else ""
