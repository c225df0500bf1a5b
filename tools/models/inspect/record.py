"""An inspection of a model as JSON, for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from camgraph.stages.people.inference.engines.engine import Opened
from camgraph.stages.people.inference.selection.placed_work import work_shares
from camgraph.stages.vision.model_contract import InputContract
from camgraph.stages.vision.recognition import Port, Reading
from camgraph.tools.models.inspect.inspection import Inspection


def as_json(found: Inspection, opened: Opened | None, tried: Mapping[str, str]) -> str:
    """The facts that are shown; ``tried``: providers that `auto` has tried and not taken, and why.

    A model that is too large to analyse was not ``opened``: facts that need it are empty, or null.

    ``shares`` are of nodes; ``shares_of_operations`` is null if they are not known, and the total of ``flops`` is a
    lower bound if some nodes' operations are not known.

    In the record ``reading`` and ``picture`` are null if they are not recognised; then ``why_not`` gives the reason.
    """
    placement = opened.engine.placement if opened else None
    record = {
        "kind": "camgraph model inspect",
        "version": 1,
        "model": found.path.name,
        "sha256": found.sha256,
        "file_bytes": found.file_bytes,
        "producer": found.producer,
        "opsets": found.opsets,
        "parameters": found.parameters,
        "operators": dict(found.operators),
        "inputs": [_port(port) for port in found.signature.inputs],
        "outputs": [_port(port) for port in found.signature.outputs],
        "metadata": dict(found.signature.metadata),
        "reading": _as_json(found.reading),
        "picture": _as_json(found.contract),
        "why_not": [text for text in (found.reading, found.contract) if isinstance(text, str)],
        "flops": _work(found),
        "too_large": found.too_large or None,
        "runs_on": opened.engine.provider if opened else None,
        "shares": placement.shares() if placement else {},
        "shares_of_operations": work_shares(found.work, placement) if placement else None,
        "passed_over": {**tried, **(opened.passed_over if opened else {})},
    }
    return json.dumps(record, indent=1) + "\n"


def _work(found: Inspection) -> dict[str, Any]:
    return {
        "size": found.size,
        "by_operator": dict(found.work.by_operator),
        "total": found.work.total,
        "not_known_of_nodes": dict(found.work.unknown),
    }


def _port(port: Port) -> dict[str, Any]:
    return {"name": port.name, "shape": port.shape, "type": port.onnx_type}


def _as_json(found: Reading | InputContract | str) -> dict[str, Any] | None:
    return None if isinstance(found, str) else asdict(found)
