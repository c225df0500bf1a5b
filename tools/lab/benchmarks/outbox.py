"""The speed of the outbox: events a second, and a start with a large backlog.

    python -m camgraph.tools.lab.benchmarks.outbox

The outbox runs by itself in this process, with one sink that takes everything at once: so the figures are those of the
file. A start is measured in a process of its own, from the opening of the file to the first event that a sink gets.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import click
import structlog

from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import Event
from camgraph.pipeline.outbox.event_file import Sync
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.single_stage import HandContext, stamp
from camgraph.tools.lab.figure import Figure, figure_command

_BODY_BYTES = 1000
_AT_ONCE = (1, 16)
_FILL = 1000
_FORGET = 64


@dataclass(frozen=True, slots=True)
class Rates:
    """Events a second, committed and delivered, with so many events in a transaction."""

    sync: str
    at_once: dict[int, float]


@dataclass(frozen=True, slots=True)
class Start:
    """With a backlog: seconds until the first event is handed out, and the most memory of the process in MB."""

    seconds: float
    memory_mb: float
    file_gb: float
    drained: float
    """Events a second that a sink takes from then on."""


def events(first: int, count: int) -> list[Item]:
    """Make this many events of 1 kB, one a frame, each an incident of its own."""
    found = []
    for n in range(first, first + count):
        head = b'{"id":"%032x","camera":"front","text":"' % n
        body = head + b"x" * (_BODY_BYTES - len(head) - 2) + b'"}'
        event = Event(stamp(n, "front"), f"{n:032x}", f"{n:032x}", "single", body)
        found.append(Item("front", Key(0, n, 0), event, "rules"))
    return found


def opened(folder: Path, sync: str, *, run: int = 1) -> Outbox:
    """The outbox of a run in this folder."""
    state = folder / f"run{run}"
    state.mkdir(exist_ok=True)
    context = HandContext(folder, state, cameras=("front",))
    values = {"path": str(folder / "outbox.sqlite"), "sinks": {"log": []}, "sync": sync, "keep_events": 100_000_000}
    outbox = Outbox(Outbox.settings_type.model_validate({**values, "keep_gb": 1000}), context)
    outbox.open()
    return outbox


def rate(folder: Path, sync: str, at_once: int, seconds: float) -> float:
    """Events a second through the outbox: committed, handed out, delivered and noted."""
    outbox = opened(folder, sync)
    done, started = 0, time.perf_counter()
    while (now := time.perf_counter()) - started < seconds:
        outbox.accept(events(done, at_once))
        done += at_once
        _deliver(outbox, _FORGET)
        outbox.committed.clear()
        outbox.maintain(now)
    elapsed = time.perf_counter() - started
    outbox.end("front")
    outbox.close()
    return done / elapsed


def _deliver(outbox: Outbox, most: int) -> int:
    rows = outbox.pull("log", most)
    outbox.acknowledge("log", [row for row, _ in rows])
    outbox.note_delivered()
    return len(rows)


def fill(folder: Path, backlog: int) -> None:
    """An outbox with so many events for a sink that is away."""
    outbox = opened(folder, "none")
    for first in range(0, backlog, _FILL):
        outbox.accept(events(first, min(_FILL, backlog - first)))
        outbox.committed.clear()
    outbox.close()


def start(folder: Path) -> Start:
    """Measured by another process, with the file in the system's cache."""
    size = (folder / "outbox.sqlite").stat().st_size
    command = [sys.executable, "-m", "camgraph.tools.lab.benchmarks.outbox", "--start", str(folder)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603
    return Start(file_gb=size / 1e9, **found)


def measured_start(folder: Path) -> dict[str, float]:
    """The `Start` of the next run, measured in this process."""
    started = time.perf_counter()
    outbox = opened(folder, "full", run=2)
    outbox.maintain(time.monotonic())
    first = _deliver(outbox, _FORGET)
    seconds = time.perf_counter() - started
    assert first
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return {"seconds": seconds, "memory_mb": memory_mb, "drained": _drain(outbox, 10.0)}


def _drain(outbox: Outbox, seconds: float) -> float:
    """Events a second of a sink that takes 64 at a time, as the relay hands them out."""
    done, started = 0, time.perf_counter()
    while (now := time.perf_counter()) - started < seconds and (taken := _deliver(outbox, _FORGET)):
        done += taken
        outbox.maintain(now)
    return done / (time.perf_counter() - started)


def report(rates: Sequence[Rates], backlog: int, found: Start) -> Iterator[str]:
    """The tables."""
    yield f"Events of {_BODY_BYTES / 1000:g} kB; committed, handed out, delivered and recorded, one sink:"
    yield ""
    yield "| `sync` | " + " | ".join(f"events/s, {n} in a commit" for n in _AT_ONCE) + " |"
    yield "|---|" + "---|" * len(_AT_ONCE)
    for row in rates:
        yield f"| {row.sync} | " + " | ".join(f"{row.at_once[n]:,.0f}" for n in _AT_ONCE) + " |"
    yield ""
    yield f"The next run, with a backlog of {backlog:,} events ({found.file_gb:.2f} GB), `sync: full`:"
    yield ""
    yield "| until the first event is handed out | most memory of the process | events/s that a sink then takes |"
    yield "|---|---|---|"
    yield f"| {found.seconds:.2f} s | {found.memory_mb:.0f} MB | {found.drained:,.0f} |"


def _say(values: Any) -> None:
    click.echo(json.dumps(values))


@figure_command("benchmarks.outbox")
@click.option("--seconds", default=5.0, show_default=True, help="For each rate.")
@click.option("--backlog", default=1_000_000, show_default=True, help="Events that wait when the next run starts.")
@click.option("--in", "place", type=click.Path(path_type=Path), help="A folder on the disk to measure.  [default: TMP]")
@click.option("--start", "started_in", type=click.Path(path_type=Path), hidden=True)
def main(figure: Figure, seconds: float, backlog: int, place: Path | None, started_in: Path | None) -> None:
    """Measure the rates, then a start with a backlog."""
    if started_in:
        _say(measured_start(started_in))
        return
    rates = []
    for sync in get_args(Sync):
        found = {}
        for n in _AT_ONCE:
            with tempfile.TemporaryDirectory(dir=place) as folder:
                found[n] = rate(Path(folder), sync, n, seconds)
        rates.append(Rates(sync, found))
    with tempfile.TemporaryDirectory(dir=place) as folder:
        fill(Path(folder), backlog)
        result = start(Path(folder))
    text = "\n".join(report(rates, backlog, result))
    figure.publish(f"{figure.head(but=['place'])}\n\n{text}")


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    main()
