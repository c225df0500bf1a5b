"""One camera by itself, for a running graph: checked like those in its file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from pipeline.errors import UserError
from pipeline.graph.nodes import Camera, find_camera
from pipeline.graph.report import Report
from pipeline.graph.yaml_source import load
from pipeline.registry import find_stage
from pipeline.stage import Source
from pipeline.system.names import A_CAMERA_NAME, is_camera_name, nfc
from pipeline.system.redaction import hide


class Checked(NamedTuple):
    """A camera, and the values in its settings to hide."""

    camera: Camera
    secrets: tuple[str, ...]


def check_camera(
    name: str,
    values: Mapping[str, Any],
    *,
    source: str,
    base_folder: Path,
    defaults: Mapping[str, Any],
    environ: Mapping[str, str] = os.environ,
) -> Checked:
    """Check a camera with these settings in the form of a graph file, `${NAME}` included.

    `source`: the kind of the graph's source stage. Raises GraphError with all mistakes in the settings, and
    UserError for a name that no camera can have.
    """
    name = nfc(name)
    if not is_camera_name(name):
        raise UserError(f"a camera cannot be called `{name}`: expected {A_CAMERA_NAME}", error_id="name-not-allowed")
    text = yaml.safe_dump({"cameras": {name: dict(values)}}, allow_unicode=True)
    report = Report(load(text, f"camera {name}", environ))
    hide(report.source.hidden)
    report.raise_if_any()
    kind = find_stage(source)
    assert issubclass(kind, Source)
    own = report.source.mapping("cameras", name)
    camera = find_camera(name, {**defaults, **own}, kind, base_folder, report)
    report.raise_if_any()
    assert camera
    return Checked(camera, tuple(sorted(report.source.hidden)))
