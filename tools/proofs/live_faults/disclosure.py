"""Looks for secrets where none may be. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote


class Disclosure:
    """Of ``secrets``, as they are and as they stand in an address."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._forms = {form for secret in secrets for form in (secret, quote(secret, safe=""), quote(secret))}
        self.places: Counter[str] = Counter()
        self.searched: Counter[str] = Counter()
        """Place -> texts."""

    def search(self, place: str, text: str) -> None:
        """Count the text, and again where a secret is in it."""
        self.searched[place] += 1
        self.places[place] += any(form in text for form in self._forms)

    @property
    def found(self) -> dict[str, int]:
        """Place -> texts with a secret in them."""
        return {place: n for place, n in self.places.items() if n}
