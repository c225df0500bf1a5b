"""A comparison of models as people read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tools.models.comparison import Compared, Limits, is_blessed, lost_ap

_COLUMNS = ("model", "MB", "memory MB", "ms a run", "speed", "runs/s", "people", "found again", "of its own", "OKS")


def table(compared: Sequence[Compared], limits: Limits) -> Iterator[str]:
    """Markdown: ratios are to the first model; AP stands there where labels were given."""
    first = compared[0]
    labelled = any(one.precision is not None for one in compared)
    columns = (*_COLUMNS, *(["AP"] if labelled else []), "verdict")
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for one in compared:
        cells = [*_cells(one, first), *([_precision(one)] if labelled else []), _verdict(one, first, limits)]
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield _legend(first, labelled)


def _cells(one: Compared, first: Compared) -> Iterator[str]:
    found = one.agreement
    yield one.model.name
    yield f"{one.model.stat().st_size / 1e6:.1f}"
    yield f"{one.peak_bytes / 1e6:.0f}"
    yield f"{one.median_ms:.1f}"
    yield f"{_ratio(first.median_ms, one.median_ms)} x"
    yield f"{one.runs_a_second:.1f}"
    yield str(found.other)
    yield from (f"{value:.3f}" for value in (found.recall, found.precision, found.mean_oks))


def _ratio(first: float, one: float) -> str:
    return f"{first / one:.2f}" if one else "-"


def _precision(one: Compared) -> str:
    return "-" if one.precision is None else f"{one.precision.ap:.3f}"


def _verdict(one: Compared, first: Compared, limits: Limits) -> str:
    if one is first:
        return "the first"
    if is_blessed(one, first, limits):
        return "good"
    if (lost := lost_ap(one, first)) > limits.most_lost:
        return f"**AP {lost:.3f} less**"
    return f"**below {limits.least:g}**"


def _legend(first: Compared, labelled: bool) -> str:
    precision = "; *AP*: of the people that `decode` gives, against the labels" if labelled else ""
    return (
        f"{first.agreement.frames} frames. *memory*: the most that a process with this model alone held; *ms a run*: "
        "one at a time, on one thread; *runs/s*: with all cores; *found again*: of the first model's people, those "
        "that it finds; *of its own*: of its people, those that the first has; *OKS*: how well the joints of people "
        f"in both agree{precision}."
    )
