"""The graph that the cameras are in: all of the way from packets to events, which tell of every single frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.proofs.live_faults.cameras import USER, Kind, Patient
from tools.proofs.trials.subject import Subject, write_graph

_VARIABLES: Mapping[Kind, str] = {"wrong": "FAULTS_WRONG_PASSWORD"}


def write_subject(folder: Path, name: str, processes: str, patients: Sequence[Patient]) -> Subject:
    """The graph file, and the model beside it; passwords stand in the environment (`environment`).

    ``processes``: how the stages are placed, `separate` or `compact`.
    """
    return write_graph(folder, name, [_camera(one) for one in patients], processes=processes, every_frame=True)


def environment(password: str, wrong: str) -> dict[str, str]:
    """The variables of the graph file."""
    return {"FAULTS_PASSWORD": password, "FAULTS_WRONG_PASSWORD": wrong}


def _camera(patient: Patient) -> str:
    variable = _VARIABLES.get(patient.kind, "FAULTS_PASSWORD")
    url = f"rtsp://{USER}:${{{variable}}}@127.0.0.1:{patient.port}/{patient.path}"
    return f'{patient.name}: {{url: "{url}", transport: {"udp" if patient.kind == "udp" else "tcp"}}}'
