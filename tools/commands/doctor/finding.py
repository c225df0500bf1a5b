"""One line of what the doctor says."""

from __future__ import annotations

from typing import Literal, NamedTuple

State = Literal["ok", "warning", "wrong"]


class Finding(NamedTuple):
    """`what` was looked at, what was `found`, and the `cure`, a command or a sentence, where one is needed."""

    state: State
    what: str
    found: str
    cure: str = ""


def worst(findings: list[Finding]) -> State:
    """The state of the whole."""
    states = {finding.state for finding in findings}
    return "wrong" if "wrong" in states else "warning" if "warning" in states else "ok"
