"""How much text a condition becomes with the definitions of its words, known before anything of it is compiled.

Each use of a word is compiled anew, so words that use words can make minutes of work of a small file. The extent of a
text is its length and that of the definitions behind it, once for each use; it is a sum, and takes no time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from camgraph.stages.rules.language.expression import NAME_OF_ANY_SCRIPT, ExpressionError
from camgraph.stages.rules.language.meaning import MAX_EXPANDED

MOST_DEEP = 30
"""Words that use words that use words."""
MOST_IN_A_FILE = 1_000_000
"""Characters of all different conditions and words of a file: some ten seconds of work."""
_NAME = re.compile(NAME_OF_ANY_SCRIPT)


def names_in(text: str) -> list[str]:
    """Whatever may be a name in a condition, in composed form."""
    return _NAME.findall(unicodedata.normalize("NFC", text))


@dataclass(frozen=True, slots=True)
class Extent:
    """`chars`: the length of a text with all definitions behind it; `depth`: how many words lead to one another."""

    chars: int
    depth: int

    @property
    def why_too_much(self) -> str:
        """The mistake in a word of this extent, or ""."""
        if self.depth > MOST_DEEP:
            return f"it leads through more than {MOST_DEEP} words to the last one: define it by fewer"
        if self.chars > MAX_EXPANDED:
            return f"with the words that it uses it is longer than {MAX_EXPANDED:,} characters: use fewer of them"
        return ""


def extents(words: Mapping[str, str]) -> dict[str, Extent]:
    """The extent of each word. A use that closes a circle counts nothing: circles are mistakes of another kind."""
    uses = {name: [used for used in names_in(text) if used in words] for name, text in words.items()}
    known: dict[str, Extent] = {}
    open_: set[str] = set()
    for first in words:
        todo = [first]
        while todo:
            name = todo[-1]
            waiting = [used for used in uses[name] if used not in known and used not in open_ and used != name]
            open_.add(name)
            if waiting and name not in known:
                todo.append(waiting[0])
                continue
            todo.pop()
            open_.discard(name)
            known[name] = _sum(words[name], [known[used] for used in uses[name] if used in known])
    return known


def extent_of(text: str, words: Mapping[str, Extent]) -> Extent:
    """The extent of a condition that uses these words."""
    return _sum(text, [words[name] for name in names_in(text) if name in words])


def _sum(text: str, used: list[Extent]) -> Extent:
    return Extent(len(text) + sum(one.chars for one in used), 1 + max((one.depth for one in used), default=0))


@dataclass(slots=True)
class Budget:
    """The work of one file. `take` raises ExpressionError once it is spent."""

    words: Mapping[str, Extent]
    _seen: set[tuple[object, ...]] = field(default_factory=set)
    _spent: int = 0

    def take(self, text: str, *how: object) -> None:
        """Count a condition, unless the same one has been counted, compiled in the same way (`how`)."""
        if (text, *how) not in self._seen:
            self._seen.add((text, *how))
            self._spent += extent_of(text, self.words).chars
        if self._spent > MOST_IN_A_FILE:
            raise ExpressionError(
                0,
                f"the conditions up to here, with the words that they use, are longer than {MOST_IN_A_FILE:,} "
                "characters: use shorter words, or several files",
            )
