"""Guesses the word that a mistyped one was meant to be."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable

_GUESS = re.compile(r"[;:,]? ?did you mean [^?]*\?")


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """The known word that is nearest to `word`, or none. One with the same letters in another order comes first."""
    return list(_nearest(word, tuple(known)))


@functools.lru_cache(maxsize=256)  # a word that is mistyped once is met in each condition that uses it
def _nearest(word: str, known: tuple[str, ...]) -> tuple[str, ...]:
    swapped = [one for one in known if one != word and sorted(one) == sorted(word)]
    return tuple(swapped[:1] or difflib.get_close_matches(word, known, n=1, cutoff=0.6))


_MEANT = {
    **dict.fromkeys(("at", "schedule", "schedules", "time", "times"), "during"),
    **dict.fromkeys(("if", "condition", "expression"), "when"),
    **dict.fromkeys(("duration", "min_duration", "lasts"), "for"),
    **dict.fromkeys(("name", "rule"), "id"),
}
"""Words of other programs that are no misspelling -> ours."""


def did_you_mean_key(word: str, known: Iterable[str]) -> str:
    """As `did_you_mean`, for a key: also for a word that other programs have for the same."""
    keys = list(known)
    meant = _MEANT.get(word.lower())
    return f"; did you mean `{meant}`?" if meant in keys else did_you_mean(word, keys)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean `x`?` for the known word that is nearest, or nothing."""
    near = nearest(word, known)
    return f"; did you mean `{near[0]}`?" if near else ""


def without_guess(text: str) -> str:
    """A message without its suggestion: one that is made of a secret repeats the secret in other letters."""
    return _GUESS.sub("", text)
