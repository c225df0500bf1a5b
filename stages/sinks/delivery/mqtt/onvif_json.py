"""Events as ONVIF's event brokers publish them (Core specification, "JSON event payload").

    PREFIX/onvif-ej/RuleEngine/camgraph/Fall/&room-3/fall       {"UtcTime": ..., "Source": {...}, "Data": {...}}
    PREFIX/onvif-ej/VideoSource/SignalLoss/&room-3

A state that begins and ends is a property: it is retained, and `State` says whether it holds. Zero bytes delete it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.mqtt.mqtt_topics import level
from camgraph.stages.sinks.delivery.mqtt.present_states import PresentStates


def onvif_topic(prefix: str, view: EventView) -> str:
    """The topic, and behind `&` the values of the source."""
    local = {"camera": "VideoSource/SignalLoss", "counter": "RuleEngine/CountAggregation/Counter"}.get(
        view.kind, f"RuleEngine/camgraph/{_name_of(view)}"
    )
    return "/".join(
        [prefix, "onvif-ej", local, "&" + level(view.camera), *map(level, list(_source(view).values())[1:])]
    )


def is_property(view: EventView) -> bool:
    """Whether it is a state, which is retained."""
    return view.kind == "camera" or (view.kind == "incident" and view.phase != "single")


def onvif_payload(view: EventView, after: PresentStates) -> bytes:
    """`after`: the states once this event has happened. An incident may end while another one of its rule goes on."""
    body = {"UtcTime": str(view.body.get("time", "")), "Source": _source(view), "Data": _data(view, after)}
    return json.dumps(body, ensure_ascii=False).encode()


def _source(view: EventView) -> dict[str, str]:
    rule = view.action if view.kind == "counter" else view.rule
    return {"VideoSource": view.camera, **({"Rule": rule} if rule and view.kind != "camera" else {})}


def _data(view: EventView, after: PresentStates) -> Mapping[str, Any]:
    if view.kind == "camera":
        return {"State": view.phase == "start"}
    if view.kind == "counter":
        return {"Count": view.data.get("inside", 0)}
    state = {"State": after.holds(view.camera, view.rule)} if is_property(view) else {}
    people = view.data.get("people")
    ids = [one.get("track_id") for one in people if isinstance(one, dict)] if isinstance(people, list) else []
    facts = {"EventId": view.event.own_id, "Incident": view.incident, "Severity": view.severity}
    return {**state, **{key: value for key, value in facts.items() if value}, **({"ObjectId": ids} if ids else {})}


def _name_of(view: EventView) -> str:
    """`raised_hand` becomes `RaisedHand`."""
    name = view.action if view.kind == "incident" else str(view.body.get("type", "")).removeprefix("camgraph.")
    words = level(name).replace(".", "_").replace("-", "_").split("_")
    return "".join(word[:1].upper() + word[1:] for word in words) or "Event"
