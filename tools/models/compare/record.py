"""A comparison of models as JSON, for programs."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from stages.inference.model.model_files import sha256_of, stored_bytes
from tools.models.compare.agreement import spread
from tools.models.compare.comparison import Compared
from tools.models.compare.verdict import Limits, compared_parts, objection


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
        **_found(one),
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


def _found(one: Compared) -> dict[str, float | None]:
    """Who is found; a classifier finds nobody."""
    found = one.agreement
    figures = {"people": found.other, "found_again": found.recall, "of_its_own": found.precision, "f1": found.f1}
    return dict.fromkeys(figures) if one.classifies else figures


def _spread(distances: array[float]) -> dict[str, float] | None:
    found = spread(distances)
    return None if found is None else found._asdict()
