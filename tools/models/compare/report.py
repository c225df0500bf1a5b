"""A comparison of models: as people read it, and as JSON for programs."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from camgraph.stages.people.inference.model.model_files import sha256_of, stored_bytes
from camgraph.stages.vision.foreign_text import shown
from camgraph.tools.models.compare.agreement import Agreement, spread
from camgraph.tools.models.compare.comparison import Compared
from camgraph.tools.models.compare.verdict import Limits, compared_parts, objection

_COLUMNS = (
    "model", "MB", "memory MB", "ms a run", "speed", "runs/s", "people", "found again", "of its own", "scores",
    "classes", "OKS", "joints px", "joints %", "confidences",
)  # fmt: skip
_NOT_MEASURED = "-"
_MOST_NAMES = 12
_CLASSIFIERS = (
    "*classes*: of how many frames both say the same; *scores*: 1 less the largest difference of any class, in the mean"
)
_PIXELS = (
    "All were given their pixels as a graph gives them: a model that wants them normalised otherwise is judged "
    "wrongly, until `camgraph model prepare --mean --std` has put that in."
)


def table(compared: Sequence[Compared], limits: Limits) -> Iterator[str]:
    """Markdown: ratios are to the first model; there is AP if labels were given, and dropped frames if there were any.

    `-` stands for figures that could not be measured.
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
    yield shown(_legend(first, labelled, dropped))


def _cells(one: Compared, first: Compared) -> Iterator[str]:
    found = one.agreement
    yield one.model.name
    yield f"{stored_bytes(one.model) / 1e6:.1f}"
    yield _figure(None if one.peak_bytes is None else one.peak_bytes / 1e6, 0)
    yield _figure(one.median_ms, 1)
    yield _speed(first.median_ms, one.median_ms)
    yield _figure(one.runs_a_second, 1)
    yield from [_NOT_MEASURED] * 3 if one.classifies else _found(found)
    yield from (_figure(value, 3) for value in (found.scores, found.classes, found.mean_oks))
    yield _distances(found.apart_px, 1)
    yield _distances(found.apart_of_size, 100)
    yield _figure(found.confidences, 3)


def _found(found: Agreement) -> Iterator[str]:
    yield str(found.other)
    yield from (_figure(value, 3) for value in (found.recall, found.precision))


def _figure(value: float | None, decimals: int) -> str:
    return _NOT_MEASURED if value is None else f"{value:.{decimals}f}"


def _distances(distances: array[float], factor: float) -> str:
    found = spread(distances)
    return _NOT_MEASURED if found is None else ", ".join(f"{factor * value:.1f}" for value in found)


def _speed(first_ms: float | None, one_ms: float | None) -> str:
    return f"{first_ms / one_ms:.2f} x" if first_ms and one_ms else _NOT_MEASURED


def _precision(one: Compared) -> str:
    return _figure(None if one.precision is None else one.precision.ap, 3)


def _verdict(one: Compared, first: Compared, limits: Limits) -> str:
    if one is first:
        return "the first"
    against = objection(one, first, limits)
    return f"good: {', '.join(compared_parts(one))}" if against is None else f"**{against}**"


def _legend(first: Compared, labelled: bool, dropped: bool) -> str:
    frames = "frame" if first.agreement.frames == 1 else "frames"
    lost = "; *dropped*: frames of which it said nothing that can be used" if dropped else ""
    labels = f"{first.labelled.people} labelled people on {first.labelled.pictures} pictures"
    precision = f"; *AP*: of the people that `decode` gives, against {labels}" if labelled else ""
    taken = (
        f"{first.agreement.frames} {frames}. *memory*: the most that a process with this model alone held; *ms a run*: "
        "one at a time, on one thread; *runs/s*: with all cores"
    )
    if first.classifies:
        return f"{taken}; {_CLASSIFIERS}{lost}. {_kinds(first)} {_PIXELS}"
    return (
        f"{taken}; *found again*: of the first model's people, those "
        "that it finds; *of its own*: of its people, those that the first has. Of people in both: *scores*, how far "
        "they are the same; *classes*, how many are called the same; *OKS*, how well their joints agree; "
        "*joints*, how far these lie apart, the median and 95 % of them, in pixels of the frame and in percent of the "
        "person's size (the root of the box's area); "
        f"*confidences*, how far both are sure of the same joints{lost}{precision}. {_kinds(first)}"
    )


def _kinds(first: Compared) -> str:
    """The classes with people: the verdict does not cover others."""
    names = first.classes_seen
    shown_names = ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")
    return f"Classes that were seen: {shown_names or 'none'}."


def as_json(compared: Sequence[Compared], limits: Limits) -> str:
    """The figures of the table; null for those that could not be measured, and for the verdict on the first model."""
    first = compared[0]
    record = {
        "kind": "camgraph model compare",
        "version": 1,
        "limits": asdict(limits),
        "frames": first.agreement.frames,
        "labelled_pictures": first.labelled.pictures,
        "labelled_people": first.labelled.people,
        "classes_seen": first.classes_seen,
        "models": [_model(one, first, limits) for one in compared],
    }
    return json.dumps(record, indent=1) + "\n"


def _model(one: Compared, first: Compared, limits: Limits) -> dict[str, Any]:
    found, is_first = one.agreement, one is first
    against = None if is_first else objection(one, first, limits)
    return {
        "model": one.model.name,
        "sha256": sha256_of(one.model),
        "file_bytes": stored_bytes(one.model),
        "peak_bytes": one.peak_bytes,
        "run_ms": one.median_ms,
        "runs_a_second": one.runs_a_second,
        **_people_figures(one),
        "scores": found.scores,
        "classes": found.classes,
        "classes_alike": found.classes_alike if one.classifies else None,
        "oks": found.mean_oks,
        "joints_apart_px": _spread(found.apart_px),
        "joints_apart_of_size": _spread(found.apart_of_size),
        "confidences": found.confidences,
        "dropped": one.dropped,
        "ap": None if one.precision is None else one.precision.ap,
        "good": None if is_first else against is None,
        "compared": compared_parts(one),
        "against": against,
    }


def _people_figures(one: Compared) -> dict[str, float | None]:
    """Who is found; a classifier finds nobody."""
    found = one.agreement
    figures = {"people": found.other, "found_again": found.recall, "of_its_own": found.precision, "f1": found.f1}
    return dict.fromkeys(figures) if one.classifies else figures


def _spread(distances: array[float]) -> dict[str, float] | None:
    found = spread(distances)
    return None if found is None else found._asdict()
