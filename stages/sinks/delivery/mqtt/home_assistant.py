"""MQTT discovery of Home Assistant: retained messages that describe entities, so that nobody has to write them there.

    DISCOVERY/binary_sensor/camgraph_GRAPH/CAMERA__ACTION/config   somebody does this now
    DISCOVERY/binary_sensor/camgraph_GRAPH/CAMERA/config           the camera is there
    DISCOVERY/image/camgraph_GRAPH/CAMERA__snapshot/config         its last picture

An empty message removes an entity. Nothing but camgraph of this graph writes below `camgraph_GRAPH`: whatever is found
there and is not described any more is removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from camgraph.pipeline.system.names import ascii_form
from camgraph.stages.sinks.delivery.mqtt.mqtt_topics import Topics

_CLASSES = {"fall": "safety", "lying": "safety"}
_ID = re.compile(r"[^A-Za-z0-9_-]+")


class Discovery:
    """The entities of one graph."""

    def __init__(self, prefix: str, graph: str, topics: Topics, *, snapshots: bool) -> None:
        self._prefix, self._graph, self._topics, self._snapshots = prefix, graph, topics, snapshots
        self._node = f"camgraph_{graph}"

    @property
    def filter(self) -> str:
        """Matches the topics of all our entities."""
        return f"{self._prefix}/+/{self._node}/+/config"

    def messages(self, camera: str, actions: Iterable[str]) -> dict[str, bytes]:
        """Topic -> content, for all entities of a camera."""
        one = _id(camera)
        found = {self._topic("binary_sensor", one): self._connected(camera)}
        for action in actions:
            found[self._topic("binary_sensor", f"{one}__{_id(action)}")] = self._action(camera, action)
        if self._snapshots:
            found[self._topic("image", f"{one}__snapshot")] = self._image(camera)
        return {topic: json.dumps(entity, ensure_ascii=False).encode() for topic, entity in found.items()}

    def _topic(self, component: str, name: str) -> str:
        return f"{self._prefix}/{component}/{self._node}/{name}/config"

    def _action(self, camera: str, action: str) -> Mapping[str, Any]:
        more = {"device_class": _CLASSES[action]} if action in _CLASSES else {"icon": "mdi:motion-sensor"}
        return {
            "name": action.replace("_", " ").capitalize(),
            "state_topic": self._topics.action(camera, action),
            "json_attributes_topic": self._topics.state(camera),
            "availability": [self._running, self._there(camera)],
            "availability_mode": "all",
            **more,
            **self._common(camera, _id(action)),
        }

    def _connected(self, camera: str) -> Mapping[str, Any]:
        return {
            "name": "Camera",
            "state_topic": self._topics.state(camera),
            "value_template": "{{ 'ON' if value_json.camera == 'live' else 'OFF' }}",
            "device_class": "connectivity",
            "entity_category": "diagnostic",
            "availability": [self._running],
            **self._common(camera, ":camera"),
        }

    def _image(self, camera: str) -> Mapping[str, Any]:
        return {
            "name": "Last incident",
            "image_topic": self._topics.snapshot(camera),
            "content_type": "image/jpeg",
            "availability": [self._running],
            **self._common(camera, ":snapshot"),
        }

    @property
    def _running(self) -> Mapping[str, str]:
        return {"topic": self._topics.availability}

    def _there(self, camera: str) -> Mapping[str, str]:
        """Nobody knows what happens before a camera that is lost."""
        return {
            "topic": self._topics.state(camera),
            "value_template": "{{ 'online' if value_json.camera == 'live' else 'offline' }}",
        }

    def _common(self, camera: str, what: str) -> Mapping[str, Any]:
        device = f"{self._node}_{_id(camera)}"
        return {
            "unique_id": f"{device}:{what}",
            "device": {
                "identifiers": [device],
                "name": camera,
                "manufacturer": "camgraph",
                "model": f"camera of {self._graph}",
            },
            "origin": {"name": "camgraph"},
        }


def _id(name: str) -> str:
    """Home Assistant takes ASCII letters, digits, `_` and `-`."""
    return _ID.sub("_", ascii_form(name))
