"""Proves the guarantees on the pulled clip and model.

    python -m camgraph.tools.lab.proofs.prove --report docs/proof.md

matrix   the same events, byte for byte, for every batch size, number of workers and threads, placement and pace
kills    SIGKILL of each process in a running graph, and of the supervisor
ring     a slot ring under stress (tools/lab/proofs/slot_stress.py)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

import click

from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.file_runs import (
    STARTS_S,
    Killing,
    Ran,
    Way,
    frames_by_pyav,
    kill_supervisor,
    run_name,
    run_way,
)
from camgraph.tools.lab.proofs.slot_stress import stress
from camgraph.tools.lab.report_page import (
    machine_line,
    median_and_worst,
)
from camgraph.tools.measuring.processes import left_over

_NOT_REPORTED = "others, and nothing is said"


@dataclass(slots=True)
class Part:
    """One part of the page, and all that was found in it and should not be."""

    lines: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def matrix(seconds: float, ways: Sequence[Way]) -> Part:
    """Run all ways."""
    expected = frames_by_pyav(seconds)
    reference = run_way(Way(processes="one"), seconds)
    part = Part()
    for number, way in enumerate(ways):
        wrong = _differences(run_way(way, seconds), reference, expected)
        click.echo(f"{number + 1}/{len(ways)} {way}: {'; '.join(wrong) or 'same'}")
        part.faults += [f"{way}: {what}" for what in wrong]
    same = len(ways) - len({fault.partition(":")[0] for fault in part.faults})
    part.lines = [
        f"{len(ways)} ways, {seconds:g} s of {len(STARTS_S)} cameras each: {len(reference.events.splitlines())} events "
        f"(each person in each frame), {sum(expected.values())} frames as PyAV counts them. {same} of {len(ways)} gave "
        "the same `events.jsonl` (order: time), byte for byte, and processed exactly these frames.",
    ]
    return part


def _differences(ran: Ran, reference: Ran, expected: dict[str, int]) -> list[str]:
    """The events of a run that the reference lacks."""
    found = [] if ran.status == 0 else [f"status {ran.status}: {ran.problems}"]
    found += [] if ran.events == reference.events else ["other events"]
    found += [] if ran.frames == expected else [f"frames {ran.frames}, expected {expected}"]
    found += [] if ran.inferred == sum(expected.values()) else [f"{ran.inferred} frames inferred"]
    found += [f"{ran.drops} frames dropped"] if ran.drops else []
    return found + [f"left over: {what}" for what in left_over(run_name())]


def all_ways() -> list[Way]:
    """The full matrix."""
    axes = (("separate", "compact", "one"), (1, 2), (1, 2), (1, 3, 8), (False, True))
    return [Way(*values) for values in itertools.product(*axes)]


def kills(seconds: float, rounds: int) -> Part:
    """Kill everything in turn."""
    way = Way(threads=2, batch=3, throttled=True)
    reference = run_way(way, seconds)
    part = Part(["| process | rounds | recovery, median and worst | events | exit status |", "|---|---|---|---|---|"])
    stateless = [*(f"capture.{camera}" for camera in STARTS_S), "prepare.0", "infer.0", "people.0", "outbox.0", "log.0"]
    for process in [*stateless, "tracks.0", "actions.0"]:
        found = [run_way(way, seconds, Killing([process], 12)) for _ in range(rounds)]
        times = [t for ran in found for t in ran.recovery_s.values()]
        statuses = sorted({ran.status for ran in found})
        if len(times) < rounds:
            part.faults.append(f"{process}: back {len(times)} times of {rounds}")
        if process in stateless and not (all(ran.events == reference.events for ran in found) and statuses == [0]):
            part.faults.append(f"{process}: other events, or status {statuses}: {[ran.problems for ran in found]}")
        if _NOT_REPORTED in (events := _events_of(found, reference)):
            part.faults.append(f"{process}: other events, and nothing is said")
        part.faults += [f"{process}: left over: {what}" for what in left_over(run_name())]
        part.lines.append(
            f"| {process} | {rounds} | {median_and_worst(times)} | {events} | {', '.join(map(str, statuses))} |"
        )
        click.echo(part.lines[-1])
    return _with_supervisor(part, seconds, rounds)


def _events_of(found: Sequence[Ran], reference: Ran) -> str:
    """In words, whether the events are those of a run in which nothing was killed."""
    if all(ran.events == reference.events for ran in found):
        return "byte-identical"
    problems = sorted({problem for ran in found for problem in ran.problems})
    return f"what was lost is said: {'; '.join(problems)}" if problems else _NOT_REPORTED


def _with_supervisor(part: Part, seconds: float, rounds: int) -> Part:
    found = [kill_supervisor(seconds) for _ in range(rounds)]
    part.faults += [f"supervisor: {one}" for one in found if one.left or not one.kept or one.status]
    kept = sum(one.kept and not one.status for one in found)
    part.lines.append(
        f"| supervisor | {rounds} | nothing left after {median_and_worst([one.clean_s for one in found])} "
        f"| in {kept} of {rounds} those written stay, and a new run works | |"
    )
    click.echo(part.lines[-1])
    return part


def ring(frames: int) -> Part:
    """Stress a ring."""
    result = stress(frames)
    bad = result["torn"] or result["slots_in_use"] or result["left_over"] or not result["noticed"]
    return Part([f"- {name}: {value}" for name, value in result.items()], [f"ring: {result}"] if bad else [])


def _machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "av", "onnxruntime-gpu", "pyzmq"))
    return f"{machine_line()}, {packages}"


@figure_command("proofs.prove")
@click.argument("what", type=click.Choice(["all", "matrix", "kills", "ring"]), default="all")
@click.option("--seconds", default=3.0, show_default=True, help="How much of the clip each camera shows.")
@click.option("--rounds", default=5, show_default=True, help="Kills of each process.")
@click.option("--frames", default=2_000_000, show_default=True, help="Frames through the ring.")
def main(figure: Figure, what: str, seconds: float, rounds: int, frames: int) -> None:
    """Prove WHAT. The page, which takes all parts, is always written; status 1 if not all is proven."""
    if figure.page and what != "all":
        raise click.UsageError("the page has all parts: leave out --report, or WHAT")
    ways = all_ways()
    parts: dict[str, tuple[str, float, Callable[[], Part]]] = {
        "matrix": ("The same events, however the graph is run", 5.0 * len(ways), lambda: matrix(seconds, ways)),
        "kills": ("Any process may die", 90.0 * rounds, lambda: kills(seconds + 2, rounds)),
        "ring": ("A slot ring under stress", frames / 15_000, lambda: ring(frames)),
    }
    wanted = {name: part for name, part in parts.items() if what in ("all", name)}
    figure.takes(sum(seconds for _, seconds, _ in wanted.values()), ", ".join(wanted))
    lines, faults = [], list[str]()
    for title, _, prove in wanted.values():
        part = prove()
        lines += [f"## {title}", "", *part.lines, ""]
        faults += part.faults
        figure.look()
    verdict_lines = (
        ["**Not all is proven:**", "", *(f"- {fault}" for fault in faults)]
        if faults
        else ["**All of this is proven.**"]
    )
    head = [f"{figure.written(but=['what'])} {_machine()}.", figure.others(), "", *verdict_lines, ""]
    figure.publish("\n".join([*head, *lines]), faults)


if __name__ == "__main__":
    main()
