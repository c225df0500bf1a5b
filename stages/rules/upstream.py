"""The rules of the stages before a sink or beside it, as their facts tell them while the graph is planned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from camgraph.pipeline.stage import Upstream
from camgraph.stages.facts import RuleNamesFact


def names_before(upstream: Upstream) -> Sequence[RuleNamesFact | None]:
    """Of each `rules` stage; None for rules with mistakes, which that stage reports."""
    return [facts["rules"]["names"] for facts in upstream.nearest("rules").values()]


def time_zone_before(upstream: Upstream) -> str | None:
    """The time zone of the rules; None if they have none, or several."""
    zones = {names["time_zone"] for names in names_before(upstream) if names and names["time_zone"]}
    return zones.pop() if len(zones) == 1 else None


def shown_rules(upstream: Upstream) -> dict[str, Any]:
    """The settings of a sink that shows the judgement of the `rules` stage beside it; none if there are several."""
    judging = [facts["rules"] for facts in upstream.beside.values() if "rules" in facts]
    if len(judging) != 1:
        return {}
    clocks = judging[0].get("clocks")
    return {"rules_text": judging[0]["text"], **({"rules_clocks": clocks} if clocks else {})}
