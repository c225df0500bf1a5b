"""An event that is about nothing, to see whether events arrive: `camgraph sinks test`."""

from __future__ import annotations

from camgraph.pipeline.messages import Event, Stamp
from camgraph.stages.events import IncidentData, digest, incident_event, utc

_RULE = "test"


def trial_event(
    site: str,
    camera: str,
    wall_ns: int,
    *,
    rule: str = _RULE,
    action: str = _RULE,
    severity: str = "info",
    snapshot: str | None = None,
) -> Event:
    """A `single` with `data.test`. Each moment (Unix, ns) has its own. `snapshot`: the name of its picture."""
    stamp = Stamp(camera, 0, 0, 0, 0, wall_ns)
    key = (site, camera, rule, wall_ns)
    data = {
        "incident": digest(*key),
        "phase": "single",
        "rule": {"id": rule, "hash": "0"},
        "action": action,
        "severity": severity,
        "camera": camera,
        "people": [],
        "keypoints_format": "coco-17",
        "zones": [],
        "start_time": utc(wall_ns),
        "duration_s": 0.0,
        "frame": {"epoch": 0, "seq": 0, "time_base": (1, 1_000_000_000), "width": 1, "height": 1},
        "test": True,
        "snapshot": snapshot,
    }
    whole = IncidentData.model_validate(data)
    return incident_event(stamp, site, key, whole, time=utc(wall_ns), updates=0)
