"""Searches for secrets in texts that must not have any. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote


class Disclosure:
    """Searches texts for ``secrets``, also as they are written in an address."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._forms = {form for secret in secrets for form in (secret, quote(secret, safe=""), quote(secret))}
        self.places: Counter[str] = Counter()
        self.searched: Counter[str] = Counter()
        """Place -> texts."""

    def search(self, place: str, text: str) -> None:
        """Count the text for its place, and note it if it has a secret."""
        self.searched[place] += 1
        self.places[place] += any(form in text for form in self._forms)

    @property
    def found(self) -> dict[str, int]:
        """Place -> texts with a secret in them."""
        return {place: n for place, n in self.places.items() if n}
