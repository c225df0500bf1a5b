"""Hands broken graphs and rules to `check`: `python -m camgraph.tools.lab.proofs.fuzz_check --report docs/proof.md`.

Each case is a graph with its rules that is right, and is then changed at a few places: values, keys and pieces of text
are taken out, doubled, swapped, or replaced by what is known to break programs. `check` must answer with its list of
mistakes, or with none; a traceback is a fault, and so is an answer that takes more than a second of processor time (the
machine may be busy with other things). A case is known by the seed and its number, and is the same on every machine.
"""

from __future__ import annotations

import copy
import random
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

import av
import click
import numpy as np
import yaml

from camgraph.pipeline.errors import CamgraphError, GraphError
from camgraph.pipeline.graph import parse_graph
from camgraph.pipeline.graph.remarks import remarks_on
from camgraph.pipeline.graph.shared_memory import in_words, memory_need
from camgraph.pipeline.registry import find_stage, stage_names
from camgraph.pipeline.system.cores import usable_cores
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.light_model import write_model
from camgraph.tools.lab.report_page import percentile

LIMIT_S = 1.0
"""Processor time within which `check` must answer."""
_BROKEN_OFF_S = 30.0
_CASE_S = 0.02
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_SHOWN = 20
_SECRET = "hunter2-hunter2"  # noqa: S105 - of nobody

GRAPH = """\
version: 1
name: site
processes: separate
cameras:
  front: {url: clip.mp4, max_fps: 5}
  yard: {url: clip.mp4, start_s: 0.1}
camera_defaults: {realtime: true}
stages:
  capture: {use: capture, cameras_per_process: 2}
  prepare: {use: preprocess, from: capture, workers: 2, with: {size: [64, 64]}}
  infer: {use: infer, from: prepare, batch: {max: 8, wait_ms: 2}, with: {model: model.onnx, providers: [cpu]}}
  people: {use: decode_yolo_pose, from: infer, with: {min_score: 0.3, iou: 0.5}}
  tracks: {use: track, from: people}
  actions: {use: rules, from: tracks, with: {file: rules.yaml}}
  more:
    use: rules
    from: tracks
    with:
      zones: {door: [[0.1, 0.1], [0.5, 0.1], [0.5, 0.9]]}
      rules: [{id: inside, when: in door, for: 2s, cameras: [front]}]
  log: {use: sink_jsonl, from: events, with: {path: events.jsonl, order: time}}
  alarm: {use: sink_socket, from: actions, with: {address: "tcp://127.0.0.1:7000"}}
  films: {use: sink_video, from: {frames: capture, tracks: tracks}, with: {path: "videos/{camera}.mp4"}}
hang_s: 10
"""
RULES = """\
version: 1
min_confidence: 0.3
zones:
  door: [[0.40, 0.42], [0.62, 0.42], [0.66, 0.54], [0.48, 0.60]]
  till: {front: [[10, 10], [60, 10], [60, 40]], "*": [[0, 0], [1, 0], [1, 1]]}
lines:
  gate: {from: [0.55, 0.30], to: [0.97, 0.42]}
other_cameras: [roof-1]
time_zone: Europe/Berlin
holidays: [2026-12-24, 12-25]
schedules:
  night: {from: "21:00", to: "06:00", days: [mon, fri], except: holidays}
  closed: [{from: "18:30", to: "08:00"}, {from: "00:00", to: "24:00", days: sun}]
counters: {visitors: {line: gate, reset: "00:00"}, at_till: {zone: till}}
switches: {armed: true, spare: "off"}
define:
  folded: distance(shoulders, knees) < far
  far: {means: 0.8bl, about: Nearly as long as the torso}
templates:
  stays:
    about: Somebody stays.
    parameters: {zone: {kind: zone, about: Where}, stay: 5s, pace: {default: 0.2h/s}}
    when: "in {zone} and speed < {pace} and not folded"
    for: "{stay}"
rules:
  - {id: stays_long, use: stays, with: {zone: door, stay: 1min}, per_camera: {front: {for: 3s, with: {pace: 1h/s}}}}
  - {use: crosses_line, with: {line: gate, direction: leftward}, during: night, not_during: [closed], while: armed}
  - {id: full, scope: scene, when: visitors.inside > 5 and at_till.entered > 1, per_camera: {front: {for: 3s}}}
  - {id: folds, when: folded and age > 2s, severity: alarm, per_camera: {"y*": {hold: 2s}}}
  - id: hands_up
    when: left_wrist.y < nose.y - 0.1h and right_wrist.y < nose.y - 0.1h
    for: 1s
    cameras: [front, "y*"]
  - {id: waits, when: in door and speed < 0.2h/s, for: 10s, hold: 2s, once: true}
  - {id: close, scope: pair, when: "distance(a.feet, b.feet) < 0.5h", cooldown: 30s, min_visible: 0.4}
  - {id: queue, scope: scene, who: in till, when: count >= 4, gap: 500ms, update: 1min}
  - {id: comes, when: "crosses(gate, rightward) or angle(left_hip, left_knee, left_ankle) < 90deg"}
"""
_LONG = "a" * 5000
_NASTY: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, -(2**70), 10**299, 0.0, -0.5, 1e308, float("nan"), float("inf"), -float("inf"),
    "", " ", "\n", "a", "é", "日本", "e\u0301", "\u202egpj", "\u200b", "\ufeff", "\U0001f4a3", "a\x00b", _LONG,
    "/" * 300, "a/" * 3000, "../" * 2000, "~nobody-of-that-name/x", "~", ".", "..", "/", "/dev/zero", "/proc/self/mem",
    "asset:", "asset:../../x", "asset:" + _LONG, "file:///etc/passwd", "rtsp://", "rtsp://[::1", "rtsp://h:999999/x",
    "http://[", "://", "rtsp://u:p@h/x?" + _LONG, "tcp://", "tcp://[::1]:x", "tcp://h:99999999", "unix://" + _LONG, "udp://:::",
    "${", "${X}", "$${X}", "${" + _LONG + "}", "$" * 500, "%", "%zz", "{camera}", "{0}", "{camera.__class__}", "{" * 50,
    "9" * 400, "9" * 400 + "s", "0." + "9" * 5000 + "s", "1e999s", "-1s", ".5s", "2s", "²s", "٣s", "1:30", "2024-01-02",
    "nose.y < " * 300, "(" * 500, "not " * 190 + "in door", "-" * 190 + "1 < 2", "1" + " < 1" * 90, "a.feet", "in",
    "left_hand.y < nose.y", "9" * 400 + " < 1", "count / 0 > 1", "in door or " * 90 + "in door", "nose.c.c.c < 1",
    [], [[]], [[[[[[[[]]]]]]]], {}, {"a": {}}, {"stage": "infer"}, {"stage": None}, {"": ""}, {"*": []}, [None] * 300,
    {str(n): n for n in range(300)}, [[0, 0], [1, 0], [1, 1]], [[0, 0]] * 101, "events", "outbox", "front", "*",
)  # fmt: skip
_TEXT = (
    "&a ", "*a", "<<: *a", "!!binary x", "!!python/object:os.system ", "!!int x", "? ", "---\n", "...\n", "%YAML 1.1\n",
    "\t", "\r", "\x85", "\u2028", "\x00", "\x07", "{", "}", "[", "]", ":", ": ", "- ", "#", "'", '"', "|\n", ">-\n",
    "\n", "  ", ", ", "1_000", "0x1f", "0o17", "0640", "~", "null", "yes", ".inf", "9" * 400, "\u202e", "\ufeff",
)  # fmt: skip
_KEYS = (
    "from",
    "with",
    "use",
    "url",
    "model",
    "file",
    "when",
    "cameras",
    "stage",
    "<<",
    "",
    "a" * 300,
    "é",
    "\x00",
    "=",
    "*",
)


@dataclass(frozen=True, slots=True)
class Case:
    """The input of `check`."""

    graph: str
    rules: str


@dataclass(slots=True)
class Tried:
    """The results of some cases: how many were wrong and right, how long each took, each fault in a sentence, and the
    numbers of the cases whose answer took longer than the limit."""

    answers: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    late: list[int] = field(default_factory=list)

    def add(self, other: Tried) -> None:
        self.answers += other.answers
        self.seconds += other.seconds
        self.faults += other.faults
        self.late += other.late


# ---- cases


def case_of(seed: int, number: int) -> Case:
    """The case of this number. Pure."""
    chance = random.Random(f"{seed}:{number}")  # noqa: S311 - no secret
    graph, rules = GRAPH, RULES
    where = chance.choice(("graph", "rules", "both", "settings"))
    if where == "settings":
        graph = _written(_with_settings(_read(GRAPH), chance))
    if where in ("graph", "both"):
        graph = changed(graph, chance)
    if where in ("rules", "both"):
        rules = changed(rules, chance)
    return Case(graph, rules)


def changed(text: str, chance: random.Random) -> str:
    """The text with one to four changes: of its values, or of its characters."""
    if chance.random() < 0.7:
        data = _read(text)
        for _ in range(chance.randint(1, 4)):
            data = _with_other_value(data, chance)
        return _written(data)
    for _ in range(chance.randint(1, 4)):
        text = _with_other_text(text, chance)
    return text


def _read(text: str) -> Any:
    return yaml.load(text, _LOADER)  # noqa: S506 - a safe one


def _written(data: Any) -> str:
    return str(yaml.dump(data, Dumper=_DUMPER, allow_unicode=True, sort_keys=False, width=200))


def _with_other_value(data: Any, chance: random.Random) -> Any:
    spots = list(_spots(data))
    if not spots:
        return copy.deepcopy(chance.choice(_NASTY))
    holder, key = chance.choice(spots)
    value = copy.deepcopy(chance.choice(_NASTY))
    match chance.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[chance.choice(_KEYS)] = holder.pop(key)
        case 2 if isinstance(holder, dict):
            holder[chance.choice(_KEYS)] = value
        case 3:
            other, at = chance.choice(spots)
            holder[key] = copy.deepcopy(other[at])
        case 4 if isinstance(holder[key], str):
            holder[key] = _with_other_text(holder[key], chance)
        case _:
            holder[key] = value
    return data


def _spots(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _spots(value[key])


def _with_other_text(text: str, chance: random.Random) -> str:
    at = chance.randint(0, len(text))
    end = min(len(text), at + chance.randint(1, 30))
    match chance.randrange(4):
        case 0:
            return text[:at] + text[end:]
        case 1:
            return text[:at] + text[at:end] * chance.randint(2, 4) + text[end:]
        case 2:
            return text[:at] + chr(chance.choice((chance.randrange(32, 127), chance.randrange(0xD7FF)))) + text[end:]
        case _:
            return text[:at] + chance.choice(_TEXT) + text[at:]


def _with_settings(data: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Any stage with any of its settings, or a camera with any of its own, one to three of them odd."""
    stages = data["stages"]
    name = chance.choice([*stages, "camera"])
    if name == "camera":
        holder = data["cameras"]["front"]
        known = find_stage("capture").camera_type.model_fields  # type: ignore[union-attr]
    else:
        stage = stages[name]
        if chance.random() < 0.3:
            stage["use"] = chance.choice(stage_names("camgraph"))
        holder = stage.setdefault("with", {})
        known = find_stage(stage["use"]).settings_type.model_fields
    for _ in range(chance.randint(1, 3)):
        if known:
            key = chance.choice(list(known))
            holder[known[key].alias or key] = copy.deepcopy(chance.choice(_NASTY))
    return data


# ---- trying


class _TooLong(BaseException):
    """Derives from BaseException, so that no `except Exception` of ours catches it."""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def broken_off(number: int, frame: FrameType | None) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, broken_off)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def make_folder(folder: Path) -> None:
    """The files that the graph names."""
    write_model(folder / "model.onnx")
    with av.open(str(folder / "clip.mp4"), "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        for number in range(10):
            grey = np.full((64, 96, 3), 20 * number, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(grey, format="rgb24")))
        container.mux(stream.encode())


def check_case(case: Case, folder: Path) -> str:
    """The answer of `check`: `right`, or the kind of its error. Raises errors that are faults."""
    (folder / "rules.yaml").write_bytes(case.rules.encode("utf-8", "surrogatepass"))
    try:
        graph = parse_graph(case.graph, "graph.yaml", base_folder=folder, environ={"X": _SECRET})
        list(remarks_on(graph))
        list(in_words(memory_need(graph)))
    except GraphError as error:
        return _text_of(error)
    except CamgraphError as error:
        return type(error).__name__
    return "right"


def _text_of(error: GraphError) -> str:
    if not error.problems or not str(error):
        raise AssertionError("it is not said what is wrong")
    if _SECRET in str(error):
        raise AssertionError("the value of a variable is told")
    return "mistakes"


def try_cases(seed: int, numbers: Sequence[int], folder: Path, *, limit_s: float = LIMIT_S) -> Tried:
    """Check each of these cases, one after the other."""
    return try_each(numbers, lambda number: check_case(case_of(seed, number), folder), limit_s=limit_s)


def try_each(numbers: Sequence[int], answer_of: Callable[[int], str], *, limit_s: float = LIMIT_S) -> Tried:
    """The answers to these cases, one after the other; an error that `answer_of` raises is a fault."""
    tried = Tried()
    for number in numbers:
        began = time.process_time()
        try:
            with _limited(max(_BROKEN_OFF_S, limit_s)):
                answer = answer_of(number)
        except _TooLong:
            tried.late.append(number)
            continue
        except Exception as error:  # noqa: BLE001 - which one it is, is what is looked for
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            tried.faults.append(f"case {number}: {type(error).__name__} at {where}: {error!s:.120}")
            continue
        seconds = time.process_time() - began
        tried.seconds.append(seconds)
        tried.answers[answer] += 1
        if seconds > limit_s:
            tried.late.append(number)
    return tried


def _share(seed: int, numbers: Sequence[int]) -> Tried:
    """In a process of its own."""
    with tempfile.TemporaryDirectory(prefix="camgraph-fuzz-") as name:
        make_folder(Path(name))
        # The first answer takes longer: stages are imported for it.
        check_case(Case(GRAPH, RULES), Path(name))
        return try_cases(seed, numbers, Path(name))


def fuzz(
    seed: int,
    cases: int,
    processes: int,
    progress: Callable[[str], None],
    share: Callable[[int, Sequence[int]], Tried] = _share,
) -> Tried:
    """Check so many cases, spread over processes. `share` tries some of them, in a process of its own.

    A case whose answer is late is tried again, alone and in a fresh process; a second late answer is a fault.
    """
    step = min(500, -(-cases // processes))
    shares = [(seed, range(begin, min(cases, begin + step))) for begin in range(0, cases, step)]
    tried = Tried()
    with get_context("spawn").Pool(processes, maxtasksperchild=8) as pool:
        waiting = [pool.apply_async(share, one) for one in shares]
        for number, result in enumerate(waiting):
            tried.add(result.get())
            progress(f"{number + 1}/{len(shares)}: {len(tried.faults)} faults, {len(tried.late)} late")
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        confirm_late(tried, lambda number: pool.apply(share, (seed, [number])))
    return tried


def confirm_late(tried: Tried, try_alone: Callable[[int], Tried]) -> None:
    """Add a fault for each case that is late again when nothing else is tried beside it."""
    # Processor time stretches while other programs share the core's caches and its second thread.
    for number in tried.late:
        again = try_alone(number)
        tried.faults += again.faults or [f"case {number}: no answer within the limit, twice" for _ in again.late]


def report(tried: Tried, cases: str) -> list[str]:
    """The part between the marks, but for the command and the machine. `cases`: how many of which."""
    message = ", ".join(f"{n} {answer}" for answer, n in tried.answers.most_common())
    verdict = "**Not all is as it should be:**" if tried.faults else "**No traceback, and no answer after a second.**"
    worst = max(tried.seconds, default=float("nan"))
    return [
        verdict,
        "",
        *(f"- {fault}" for fault in tried.faults[:_SHOWN]),
        *([f"- and {len(tried.faults) - _SHOWN} more"] if len(tried.faults) > _SHOWN else []),
        *([""] if tried.faults else []),
        f"{cases}: {message}. An answer took {_ms(percentile(tried.seconds, 0.5))} "
        f"(median), {_ms(percentile(tried.seconds, 0.99))} (99 of 100), {_ms(worst)} (worst) of processor time."
        + (f" {len(tried.late)} late answers were asked for again, alone." if tried.late else ""),
    ]


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


@figure_command("proofs.fuzz_check")
@click.option("--cases", default=100_000, show_default=True, help="How many graphs.")
@click.option("--seed", default=1, show_default=True, help="Other cases for another one.")
@click.option("--processes", default=usable_cores(), show_default="one a core", help="Among how many it is spread.")
def main(figure: Figure, cases: int, seed: int, processes: int) -> None:
    """Hand broken graphs, rules and settings to `check`; status 1 if one of them ends in a traceback or takes long."""
    figure.takes(_CASE_S * cases / processes, f"{cases} cases")
    tried = fuzz(seed, cases, processes, click.echo)
    head = [figure.head(), figure.others(), ""]
    figure.publish("\n".join([*head, *report(tried, f"{cases} broken graphs, rules and settings")]), tried.faults)


if __name__ == "__main__":
    main()
