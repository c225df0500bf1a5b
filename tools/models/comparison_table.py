"""A comparison of models as people read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stages.vision.foreign_text import shown
from tools.models.comparison import Compared
from tools.models.verdict import Limits, objection

_COLUMNS = (
    "model", "MB", "memory MB", "ms a run", "speed", "runs/s", "people", "found again", "of its own", "OKS",
    "confidences",
)  # fmt: skip
_NOT_MEASURED = "-"


def table(compared: Sequence[Compared], limits: Limits) -> Iterator[str]:
    """Markdown: ratios are to the first model; AP stands there where labels were given, dropped frames where any were.

    What could not be measured is `-`.
    """
    first = compared[0]
    labelled = any(one.precision is not None for one in compared)
    dropped = any(one.dropped for one in compared)
    columns = (*_COLUMNS, *(["dropped"] if dropped else []), *(["AP"] if labelled else []), "verdict")
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for one in compared:
        further = [*([str(one.dropped)] if dropped else []), *([_precision(one)] if labelled else [])]
        yield shown(f"| {' | '.join([*_cells(one, first), *further, _verdict(one, first, limits)])} |")
    yield ""
    yield _legend(first, labelled, dropped)


def _cells(one: Compared, first: Compared) -> Iterator[str]:
    found = one.agreement
    yield one.model.name
    yield f"{one.model.stat().st_size / 1e6:.1f}"
    yield _figure(None if one.peak_bytes is None else one.peak_bytes / 1e6, 0)
    yield _figure(one.median_ms, 1)
    yield _speed(first.median_ms, one.median_ms)
    yield _figure(one.runs_a_second, 1)
    yield str(found.other)
    yield from (_figure(value, 3) for value in (found.recall, found.precision, found.mean_oks, found.confidences))


def _figure(value: float | None, decimals: int) -> str:
    return _NOT_MEASURED if value is None else f"{value:.{decimals}f}"


def _speed(first_ms: float | None, one_ms: float | None) -> str:
    return f"{first_ms / one_ms:.2f} x" if first_ms and one_ms else _NOT_MEASURED


def _precision(one: Compared) -> str:
    return _figure(None if one.precision is None else one.precision.ap, 3)


def _verdict(one: Compared, first: Compared, limits: Limits) -> str:
    if one is first:
        return "the first"
    against = objection(one, first, limits)
    return "good" if against is None else f"**{against}**"


def _legend(first: Compared, labelled: bool, dropped: bool) -> str:
    frames = "frame" if first.agreement.frames == 1 else "frames"
    lost = "; *dropped*: frames of which it said nothing that can be used" if dropped else ""
    precision = "; *AP*: of the people that `decode` gives, against the labels" if labelled else ""
    return (
        f"{first.agreement.frames} {frames}. *memory*: the most that a process with this model alone held; *ms a run*: "
        "one at a time, on one thread; *runs/s*: with all cores; *found again*: of the first model's people, those "
        "that it finds; *of its own*: of its people, those that the first has; *OKS*: how well the joints of people "
        f"in both agree; *confidences*: how far both are sure of the same joints{lost}{precision}."
    )
