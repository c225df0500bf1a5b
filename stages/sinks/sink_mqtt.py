"""Publishes events to an MQTT 5 broker, and shows the present state of each camera there.

    house: {use: sink_mqtt, from: actions, with: {address: "mqtts://broker.local", username: camgraph,
            password: "${secret:mqtt}", home_assistant: true}}

An event goes to `camgraph/GRAPH/CAMERA/ACTION` with QoS 1, and is delivered once the broker has acknowledged it. Beside
the events, these topics are retained, so that a client that connects later knows how things stand:

| topic | |
|---|---|
| `camgraph/GRAPH/availability` | `online`; `offline` after the end, which the broker itself says if camgraph dies |
| `camgraph/GRAPH/CAMERA/state` | JSON: is the camera there, which incidents are open, which actions happen now |
| `camgraph/GRAPH/CAMERA/ACTION/state` | `ON` while somebody does it, else `OFF` |
| `camgraph/GRAPH/CAMERA/snapshot` | the last picture, with `snapshots: true` |

States follow all incidents that `only` and `never` let through, whatever their phase; `merge` and `cooldown` are for
events alone. The sink connects at its start and stays connected. With `format: onvif` events have the form of ONVIF
cameras, and with `home_assistant: true` Home Assistant finds all cameras and actions by itself.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.messages import EVENT_PHASES, Message
from camgraph.pipeline.stage import Context, Upstream
from camgraph.pipeline.system.disk import write_whole
from camgraph.stages.sinks.delivery.broker import BrokerSettings, BrokerSink
from camgraph.stages.sinks.delivery.durations import seconds
from camgraph.stages.sinks.delivery.event_sink import Refused
from camgraph.stages.sinks.delivery.event_view import EventView, view_of
from camgraph.stages.sinks.delivery.footage_files import FootageFiles, FootageSettings, TooLarge, footage_beside
from camgraph.stages.sinks.delivery.mqtt.home_assistant import Discovery
from camgraph.stages.sinks.delivery.mqtt.mqtt_link import LinkOptions, MqttLink, Publication
from camgraph.stages.sinks.delivery.mqtt.mqtt_topics import Topics, TopicTemplate, TopicText, level
from camgraph.stages.sinks.delivery.mqtt.onvif_json import is_property, onvif_payload, onvif_topic
from camgraph.stages.sinks.delivery.mqtt.present_states import PresentStates
from camgraph.stages.sinks.delivery.template import filled

if TYPE_CHECKING:
    from camgraph.stages.rules.rule_set import RuleSet

_MOST_PICTURE = 4 << 20
_ONVIF = "/onvif-ej/"


class SinkMqttSettings(BrokerSettings, FootageSettings):
    """The broker, the topics, and who reads them."""

    ports: ClassVar[Mapping[str, int]] = {"mqtt": 1883, "mqtts": 8883}

    address: str = Field(description="mqtt://HOST[:PORT]; mqtts:// with TLS")
    prefix: TopicText | None = Field(None, description="All topics begin with it; by default camgraph/GRAPH")
    topic: TopicTemplate = Field(
        "{camera}/{action}",
        description="Of an event, behind the prefix, with {camera}, {action}, {rule}, {severity} and so on. In values, "
        "letters that mean something in topics become `_`; for an event without an action stands its kind",
    )
    format: Literal["cloudevents", "onvif"] = Field(
        "cloudevents", description="cloudevents: as in files. onvif: topics and JSON as of ONVIF's event brokers"
    )
    home_assistant: bool = Field(False, description="Describe all cameras and actions to Home Assistant")
    discovery_prefix: TopicText = Field("homeassistant", description="Where Home Assistant looks for descriptions")
    snapshots: bool = Field(False, description="Publish the last picture that `sink_footage` has made of each camera")
    cameras: list[str] | None = Field(
        None,
        description="Show these cameras, and delete all that the broker retains of others; by default those of the "
        "graph, and with a `prefix` of yours, which other graphs may share, nothing is deleted",
    )
    client_id: str | None = Field(
        None, min_length=1, max_length=200, description="How the broker knows us; by default camgraph-GRAPH-STAGE"
    )
    rules_text: str | None = Field(
        None, description="The rules before it when the graph was read, filled in automatically: their actions"
    )


class SinkMqtt(BrokerSink[SinkMqttSettings]):
    """Events -> publications; their sum -> retained topics."""

    settings_type = SinkMqttSettings
    package, extra = "paho", "mqtt"
    follows_cameras = True

    def __init__(self, settings: SinkMqttSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._topics = Topics(settings.prefix or f"camgraph/{context.graph}")
        self._states = PresentStates()
        self._actions: dict[str, set[str]] = {}
        """Camera -> the actions that have a topic."""
        self._discovery = Discovery(
            settings.discovery_prefix, context.graph, self._topics, snapshots=settings.snapshots
        )
        self._footage = FootageFiles(settings.footage_folders, context.base_folder)
        self._link: MqttLink | None = None
        self._showing = threading.RLock()
        """Cameras come and go beside the events."""

    @cached_property
    def _rules(self) -> RuleSet | None:
        from camgraph.stages.rules.rule_set import parse_rules  # noqa: PLC0415 - half of camgraph, and many sinks have no rules

        return parse_rules(self.settings.rules_text, "the rules") if self.settings.rules_text else None

    @classmethod
    def follow(cls, settings: SinkMqttSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        before = [facts["rules"] for facts in upstream.nearest("rules").values()]
        is_one = len(before) == 1 and settings.rules_text is None
        return {
            **super().follow(settings, base_folder, upstream),
            **footage_beside(settings, upstream),
            **({"rules_text": before[0]["text"]} if is_one else {}),
        }

    # ---- the connection

    def open(self) -> None:
        """Connect in the background; it goes on if the broker is away."""
        super().open()
        self._link = MqttLink(self._options(), self.context.trouble)
        self._restore()
        self.cameras_changed()
        self._link.start()

    def _options(self) -> LinkOptions:
        settings, names = self.settings, [self.context.graph, self.context.stage]
        is_trial = not self.context.cameras  # beside a run, which it must not throw off the broker, nor say it is gone
        if self.context.workers > 1:
            names.append(str(self.context.worker))
        return LinkOptions(
            address=self.address,
            client_id=(settings.client_id or "-".join(["camgraph", *names])) + ("-test" * is_trial),
            username=settings.username,
            password=settings.password,
            tls=self.tls,
            server_name=self.server_name,
            availability="" if is_trial else self._topics.availability,
            not_understood=self.not_understood,
            stale=self._stale() if self.context.workers == 1 and self._cameras else {},
            too_large=lambda topic, size, most: self.context.log.warning(
                "not_published", topic=topic, why=f"it has {size:,} bytes, and the broker takes {most:,} at once"
            ),
        )

    def connect(self) -> None:
        self._up.wait()

    def close(self) -> None:
        if self._link:
            self._link.stop()

    @property
    def _up(self) -> MqttLink:
        assert self._link
        return self._link

    # ---- events

    def send(self, events: Sequence[EventView]) -> None:
        publications = self._publications(events)
        results = self._up.deliver(publications)
        refused: dict[str, str] = {}
        for view, one, result in zip(events, publications, results, strict=False):
            if result and not result.for_good:
                raise Unavailable(f"{self.address}: {result.why}: {one.topic}")
            if result:
                refused[view.event.id] = f"{one.topic}: {result.why}"
                continue
            if one.retain:
                self._up.keep(one.topic, one.payload)
            self.sent_already(view)
        if refused:
            raise Refused(refused)
        if len(results) < len(events):
            raise Unavailable(self._up.why)

    def _publications(self, events: Sequence[EventView]) -> list[Publication]:
        if self.settings.format == "cloudevents":
            return [Publication(self._topic(view), view.event.body, False, self._properties(view)) for view in events]
        after, found = self._states.copy(), []
        for view in events:
            after.take(view)
            topic, payload = onvif_topic(self._topics.prefix, view), onvif_payload(view, after)
            found.append(Publication(topic, payload, is_property(view), self._properties(view)))
        return found

    def _topic(self, view: EventView) -> str:
        below = filled(self.settings.topic, view, self.settings.time_zone, lambda value: level(value) or view.kind)
        return f"{self._topics.prefix}/{below}"

    def _properties(self, view: EventView) -> Mapping[str, Any]:
        is_cloud_event = self.settings.format == "cloudevents"
        found: dict[str, Any] = {
            "ContentType": "application/cloudevents+json" if is_cloud_event else "application/json",
            "PayloadFormatIndicator": 1,
            "UserProperty": [("id", view.event.own_id)],
        }
        if self.settings.expires:
            left_s = seconds(self.settings.expires) - self.waited_s(view)
            found["MessageExpiryInterval"] = max(1, round(left_s))
        return found

    # ---- states

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        outputs = super().process(items)
        with self._showing:
            for item in items:  # all of them are delivered or left out
                self._follow(view_of(item))
            self._keep()
        return outputs

    def cameras_changed(self) -> None:
        """Show those of the run from the start, and take away those that are gone."""
        with self._showing:
            for gone in self._actions.keys() - set(self._cameras):
                self._forget(gone)
            self._announce(self._cameras)

    @property
    def _cameras(self) -> tuple[str, ...]:
        """Those to show; none if it has none, as in `camgraph sinks test`."""
        return tuple(self.settings.cameras or self.context.cameras) if self.context.cameras else ()

    def _follow(self, view: EventView) -> None:
        if view.camera not in self._cameras:
            return  # an event that has waited here while its camera was removed
        if self._belongs(view):
            self._states.take(view)
            if view.kind == "incident":
                self._show_incident(view)
            if view.kind in ("incident", "camera"):
                self._show_camera(view.camera)
        if self.settings.snapshots and view.body.get("type") == "camgraph.footage.ready":
            self._show_picture(view)

    def _belongs(self, view: EventView) -> bool:
        """Whether states follow it: all of an incident if one of its phases is let through, and always its end."""
        if view.kind == "camera" or self._states.is_open(view.camera, view.incident):
            return True
        return any(self._selection.fits(view, phase=phase) for phase in EVENT_PHASES)

    def _show_incident(self, view: EventView) -> None:
        camera, action = view.camera, view.action
        if action not in self._actions.setdefault(camera, set()):
            self._announce([camera], [action])
        if view.phase == "single":  # a moment: it is on and off again
            self._up.show(self._topics.action(camera, action), b"ON")
        self._show_action(camera, action)

    def _show_action(self, camera: str, action: str) -> None:
        is_on = action in self._states.actions(camera)
        self._up.show(self._topics.action(camera, action), b"ON" if is_on else b"OFF")

    def _show_camera(self, camera: str) -> None:
        now = self._states.actions(camera)
        state = {
            "camera": self._state_of(camera),
            "actions": {one: "ON" if one in now else "OFF" for one in sorted(self._actions.get(camera, ()))},
            "incidents": self._states.incidents(camera),
        }
        self._up.show(self._topics.state(camera), json.dumps(state, ensure_ascii=False).encode())

    def _state_of(self, camera: str) -> str:
        """As the run knows it, also if the sink gets no events of cameras; before its first picture `connecting`."""
        return self.context.cameras_now.get(camera, "connecting")

    def _show_picture(self, view: EventView) -> None:
        file = view.data.get("file")
        if view.data.get("kind") != "snapshot" or not isinstance(file, str):
            return
        try:
            self._up.show(self._topics.snapshot(view.camera), self._footage.picture(file, _MOST_PICTURE))
        except TooLarge:
            self._picture_not_published(view, "it is too large")
        except OSError as error:
            self._picture_not_published(view, error.strerror or str(error))
        except ValueError as error:
            self._picture_not_published(view, str(error))

    def _picture_not_published(self, view: EventView, why: str) -> None:
        self.context.log.warning("picture_not_published", camera=view.camera, file=view.data.get("file"), why=why)

    def _announce(self, cameras: Iterable[str], actions: Iterable[str] = ()) -> None:
        """Give these cameras and actions their topics, and describe them to Home Assistant."""
        for camera in cameras:
            known = self._actions.setdefault(camera, set())
            known.update(actions)
            if self._rules:
                known.update(one.definition.action or one.definition.id for one in self._rules.of_camera(camera))
            for action in known:
                self._show_action(camera, action)
            self._show_camera(camera)
            if self.settings.home_assistant:
                for topic, entity in self._discovery.messages(camera, known).items():
                    self._up.show(topic, entity)

    def _forget(self, camera: str) -> None:
        """Delete all that is retained of a camera that is gone."""
        entities = self._discovery.messages(camera, self._actions.pop(camera, ()))
        source = "&" + level(camera)
        self._states.forget(camera)
        own = f"{self._topics.prefix}/{level(camera)}/"
        for topic in self._up.shown:
            is_onvif = _ONVIF in topic and source in topic.split("/")
            if topic.startswith(own) or topic in entities or is_onvif:
                self._up.show(topic, b"")
        self._keep()

    def _stale(self) -> dict[str, Any]:
        """Filter of topics -> whether one that is retained there is left over from cameras that are no more."""
        below = len(self._topics.prefix.split("/"))

        def is_gone(topic: str) -> bool:
            return topic.split("/")[below] not in {level(camera) for camera in self._cameras}

        is_ours = self.settings.prefix is None or self.settings.cameras is not None
        filters = [f"{self._topics.prefix}/+/{end}" for end in ("state", "snapshot", "+/state") if is_ours]
        entities = {self._discovery.filter: lambda _: True} if self.settings.home_assistant else {}
        return {**dict.fromkeys(filters, is_gone), **entities}

    # ---- for a process that begins anew

    def _keep(self) -> None:
        onvif = {topic: payload.decode() for topic, payload in self._up.shown.items() if _ONVIF in topic}
        actions = {camera: sorted(found) for camera, found in self._actions.items()}
        kept = {"states": self._states.kept(), "onvif": onvif, "actions": actions}
        text = json.dumps(kept)
        if text == self._kept_text:
            return
        try:
            write_whole(self._file, text.encode())
            self._kept_text = text
        except OSError as error:
            self.context.log.warning("states_not_kept", file=str(self._file), why=error.strerror)

    _kept_text = ""

    def _restore(self) -> None:
        try:
            kept = json.loads(self._file.read_text())
            self._states = PresentStates(kept["states"])
            self._actions = {camera: set(found) for camera, found in kept["actions"].items()}
            for topic, payload in kept["onvif"].items():
                self._up.show(topic, payload.encode())
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            self.context.log.warning("states_begin_anew", file=str(self._file), why=str(error))

    @property
    def _file(self) -> Path:
        return self.context.state_folder / f"mqtt.{self.context.stage}.{self.context.worker}.json"
