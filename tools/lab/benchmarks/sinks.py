"""Measures how many events sinks deliver.

    python -m camgraph.tools.lab.benchmarks.sinks [--report docs/benchmarks.md]    (after `make dev`)

    burst ─> the sink, in this process ─> a receiver in another process, or a file

Each sink gets the events by hand, as the outbox would give them: in batches, and one by one. An event has one person
with 17 joints. The receiver counts the different events that have arrived. To add a sink, add a case to `CASES`.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import structlog

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.messages import Event
from camgraph.pipeline.registry import find_stage
from camgraph.pipeline.stage import Stage
from camgraph.pipeline.testing import opened, stamp
from camgraph.tools.lab.benchmarks.sink_brokers import (
    Held,
    kafka_within_its_client,
    mqtt_session,
    nats_stream,
    rabbitmq_queue,
    redis_stream,
)
from camgraph.tools.lab.benchmarks.sink_receivers import Receiver, receiver
from camgraph.tools.lab.broker_servers import free_port
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import machine_line

_BATCH = 100
_LONGEST_S = 120.0


@dataclass(frozen=True, slots=True)
class Running:
    """`settings` of the sink; `arrived` is asked at the end."""

    settings: Mapping[str, Any]
    arrived: Callable[[], int]
    ready: Callable[[], None] = lambda: None
    """Called once the sink is open: receivers that connect to it do so now."""


@dataclass(frozen=True, slots=True)
class Case:
    """A sink, with the other side that it needs. `running` gets a folder."""

    name: str
    sink: str
    running: Callable[[Path], AbstractContextManager[Running]]


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one case. `arrived`: the part of the burst that arrived; 1 for all."""

    name: str
    burst_s: float
    burst_rate: float
    single_rate: float
    arrived: float


# ---- the cases


def _file(name: str, **settings: Any) -> Callable[[Path], AbstractContextManager[Running]]:
    @contextmanager
    def running(folder: Path) -> Iterator[Running]:
        path = folder / name

        def arrived() -> int:
            return sum(1 for line in path.read_bytes().splitlines() if b"incident-" in line)

        yield Running({"path": name, **settings}, arrived)

    return running


def _http(**settings: Any) -> Callable[[Path], AbstractContextManager[Running]]:
    @contextmanager
    def running(folder: Path) -> Iterator[Running]:
        with receiver("http") as other:
            url = f"http://127.0.0.1:{other.port}/"
            yield Running({"url": url, "allow_private": True, "most_bytes": 1 << 20, **settings}, other.count)

    return running


@contextmanager
def _socket(folder: Path) -> Iterator[Running]:
    with receiver("lines") as other:
        yield Running({"address": f"tcp://127.0.0.1:{other.port}"}, other.count)


def _served(kind: str, **settings: Any) -> Callable[[Path], AbstractContextManager[Running]]:
    """A sink to which its receiver connects."""

    @contextmanager
    def running(folder: Path) -> Iterator[Running]:
        port, others = free_port(), list[Receiver]()
        with ExitStack() as stack:

            def connect() -> None:
                others.append(stack.enter_context(receiver(kind, port)))
                time.sleep(1.0)  # until it has subscribed: nothing tells that to a sink without events

            def arrived() -> int:
                return others[0].count()

            yield Running({"address": f"tcp://127.0.0.1:{port}", **settings}, arrived, connect)

    return running


def _broker(
    place: Callable[[Path], AbstractContextManager[Held]],
) -> Callable[[Path], AbstractContextManager[Running]]:
    @contextmanager
    def running(folder: Path) -> Iterator[Running]:
        with place(folder) as (settings, held):
            yield Running(settings, held)

    return running


_SECRET = "whsec_" + "QUFB" * 8
CASES = (
    Case("`sink_jsonl`, on the disk", "sink_jsonl", _file("synced.jsonl")),
    Case("`sink_jsonl`, `sync: false`", "sink_jsonl", _file("quick.jsonl", sync=False)),
    Case("`sink_csv`", "sink_csv", _file("table.csv")),
    Case("`sink_socket`, connected", "sink_socket", _socket),
    Case("`sink_socket`, serving", "sink_socket", _served("feed", listen=True)),
    Case("`sink_zmq`", "sink_zmq", _served("zmq", most_waiting=100_000)),
    Case("`sink_webhook`, signed", "sink_webhook", _http(signing_secrets=_SECRET)),
    Case("`sink_webhook`, `mode: batched`", "sink_webhook", _http(mode="batched")),
    Case("`sink_mqtt`, mosquitto", "sink_mqtt", _broker(mqtt_session)),
    Case("`sink_redis`, redis-server with `appendonly`", "sink_redis", _broker(redis_stream)),
    Case("`sink_nats`, nats-server, in files", "sink_nats", _broker(nats_stream)),
    Case("`sink_amqp`, rabbitmq-server, a durable queue", "sink_amqp", _broker(rabbitmq_queue)),
    Case("`sink_kafka`, the cluster within its client", "sink_kafka", _broker(kafka_within_its_client)),
)


# ---- measuring


def event(number: int) -> Event:
    """The only event of an incident, of 0.9 kB."""
    at = f"2026-11-23T12:{number // 60 % 60:02}:{number % 60:02}.000Z"
    keypoints = [round(100 + 3.14 * joint, 2) for joint in range(51)]
    person = {"track_id": number, "bbox": [100.0, 50.0, 220.5, 410.25], "score": 0.912, "keypoints": keypoints}
    body = {
        "specversion": "1.0",
        "id": f"incident-{number}",
        "source": "camgraph/bench",
        "type": "camgraph.incident.single",
        "subject": "room-3",
        "time": at,
        "datacontenttype": "application/json",
        "dataschema": "urn:camgraph:event:1",
        "data": {
            "incident": f"{number:016x}",
            "phase": "single",
            "rule": {"id": "fall", "hash": "5f0c"},
            "action": "fall",
            "severity": "alarm",
            "camera": "room-3",
            "people": [person],
            "zones": ["bed"],
            "start_time": at,
            "duration_s": 0.0,
        },
    }
    line = json.dumps(body, separators=(",", ":")).encode()
    return Event(stamp(number, "room-3"), f"incident-{number}", f"{number:016x}", "single", line)


def delivered_s(sink: Any, events: list[Event], batch: int) -> float:
    """The seconds until the sink has delivered all of them, handed in again as the runtime would."""
    began = time.perf_counter()
    for at in range(0, len(events), batch):
        while True:
            try:
                sink.process(events[at : at + batch])
                break
            except Unavailable as error:
                if time.perf_counter() - began > _LONGEST_S:
                    raise click.ClickException(f"not delivered within {_LONGEST_S:g} s: {error}") from None
                time.sleep(0.001)
    return time.perf_counter() - began


def measure(case: Case, count: int) -> Figures:
    singles = math.ceil(count / 10)
    with tempfile.TemporaryDirectory() as name, case.running(Path(name)) as running:
        folder = Path(name)
        quiet = structlog.wrap_logger(None, processors=[_dropped])
        sink_class = find_stage(case.sink)
        assert issubclass(sink_class, Stage)
        with opened(sink_class, running.settings, folder=folder, log=quiet) as sink:
            running.ready()
            burst_s = delivered_s(sink, [event(number) for number in range(count)], _BATCH)
            single_s = delivered_s(sink, [event(number) for number in range(count, count + singles)], 1)
        arrived = running.arrived()
    return Figures(case.name, burst_s, count / burst_s, singles / single_s, arrived / (count + singles))


def _dropped(*_: Any) -> Any:
    raise structlog.DropEvent


def table(found: list[Figures], count: int) -> list[str]:
    """Pure."""
    return [
        f"| sink | burst of {count:,}, {_BATCH} a call | events a second | one a call: events a second | arrived |",
        "|---|---|---|---|---|",
        *(
            f"| {one.name} | {one.burst_s:.2f} s | {one.burst_rate:,.0f} | {one.single_rate:,.0f} | {one.arrived:.1%} |"
            for one in found
        ),
    ]


@figure_command("benchmarks.sinks")
@click.option("--events", default=10_000, show_default=True, help="In the burst; a tenth of it one by one.")
@click.option("--only", help="The cases whose name has this text.")
def main(figure: Figure, events: int, only: str | None) -> None:
    """Measure how many events sinks deliver."""
    found = list[Figures]()
    for case in CASES:
        if (only or "") in case.name:
            try:
                found.append(measure(case, events))
            except LookupError as missing:
                click.echo(f"{case.name}: left out: {missing}")
            figure.look()
    if not found:
        raise click.ClickException(f"no case has {only!r} in its name: there are {', '.join(c.name for c in CASES)}")
    lines = [*table(found, events), "", f"{machine_line()}. {figure.others()}", figure.written()]
    figure.publish("\n".join(lines))


if __name__ == "__main__":
    main()
