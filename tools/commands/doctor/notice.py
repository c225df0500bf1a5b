"""One line of the doctor's report."""

from __future__ import annotations

from typing import Literal, NamedTuple

State = Literal["ok", "warning", "wrong"]


class Notice(NamedTuple):
    """The part that was checked (`what`), the result (`found`), and the `cure`, a command or a sentence, if one is
    needed.
    """

    state: State
    what: str
    found: str
    cure: str = ""


def worst(findings: list[Notice]) -> State:
    """The state of the whole."""
    states = {finding.state for finding in findings}
    return "wrong" if "wrong" in states else "warning" if "warning" in states else "ok"
