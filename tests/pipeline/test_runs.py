"""Whole graphs in real processes: the same results however they are placed, and through the death of any process."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.monitoring.run_status import StageStatus
from camgraph.pipeline.supervision.control_client import ask
from camgraph.pipeline.supervision.process import Process
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.system.paths import runs_folder
from camgraph.pipeline.testing import hit, run_graph

GRAPH = """
version: 1
name: {name}
processes: {processes}
cameras:
  a: {{frames: {frames}, bytes: 30000, pace_ms: {pace_ms}}}
  b: {{frames: {half}, bytes: 30000, pace_ms: {pace_ms}}}
  c: {{frames: {frames}, bytes: 100, pace_ms: {pace_ms}}}
stages:
  src: {{use: count_source}}
  left: {{use: double, from: src, workers: {workers}}}
  model: {{use: null_model, from: left, threads: {threads}, batch: {{max: {batch}}}, with: {{cost_ms: 1}}}}
  thin: {{use: thin, from: model, with: {{every: 3}}}}
  sum: {{use: running_sum, from: thin}}
  both: {{use: pair, from: {{left: src, right: thin}}}}
  emit: {{use: emit, from: sum, with: {{every: 2}}}}
  numbers: {{use: collect, from: both, batch: {{max: 8}}, with: {{path: numbers}}}}
  timed: {{use: collect_events, from: emit, batch: {{max: 8}}, with: {{path: timed, order: time}}}}
"""


def write(folder: Path, **values: Any) -> Path:
    defaults = {"processes": "separate", "frames": 120, "pace_ms": 0, "workers": 1, "threads": 1, "batch": 4}
    merged = {**defaults, "name": f"t{os.getpid()}", **values}
    path = folder / "graph.yaml"
    path.write_text(GRAPH.format(**merged, half=merged["frames"] // 2))
    return path


def lines(path: Path) -> list[str]:
    """The lines that a sink wrote, without repetitions: these sinks do not check what they have already."""
    return list(dict.fromkeys(path.read_text().splitlines()))


def results(folder: Path) -> tuple[list[str], list[str]]:
    return sorted(lines(folder / "numbers")), lines(folder / "timed")


def nothing_left() -> bool:
    name = f"t{os.getpid()}"
    segments = list(Path("/dev/shm").glob(f"camgraph-{os.getuid()}-{name}-*"))
    return not segments and not (runs_folder() / name).exists()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], tuple[list[str], list[str]]]:
    known: dict[int, tuple[list[str], list[str]]] = {}

    def of(frames: int) -> tuple[list[str], list[str]]:
        if frames not in known:
            folder = tmp_path_factory.mktemp("expected")
            outcome, _ = run_graph(load_plan(write(folder, processes="one", frames=frames)))
            assert outcome.status == 0
            known[frames] = results(folder)
        return known[frames]

    return of


def test_the_reference_is_what_the_stages_say(expected: Callable[[int], tuple[list[str], list[str]]]) -> None:
    numbers, timed = expected(120)
    assert len(numbers) == 40 + 20 + 40
    assert [line.split()[:3] for line in timed[:4]] == [[c, "0", str(s)] for s in (0, 6) for c in ("a", "b", "c")][:4]


@pytest.mark.parametrize("processes", ["separate", "compact"])
@pytest.mark.parametrize(("workers", "threads", "batch"), [(1, 1, 1), (2, 2, 3), (1, 2, 8)])
def test_results_are_independent_of_placement(
    tmp_path: Path, expected: Any, processes: str, workers: int, threads: int, batch: int
) -> None:
    graph = write(tmp_path, processes=processes, workers=workers, threads=threads, batch=batch)
    outcome, status = run_graph(load_plan(graph))
    assert (outcome.status, outcome.problems) == (0, [])
    assert results(tmp_path) == expected(120)
    assert {name: camera["frames"] for name, camera in status["cameras"].items()} == {"a": 120, "b": 60, "c": 120}
    assert sum(camera["drops"] for camera in status["cameras"].values()) == 0
    assert nothing_left()


class Harm:
    """Sends a signal to processes once some frames have gone through; says whether it did.

    Those of one group get it at the same time, those of the next when all before are running again. `unheard_s`: and
    not before so long after the first of them has told of frames.
    """

    def __init__(
        self, *groups: Sequence[str], number: int = signal.SIGKILL, after: int = 40, unheard_s: float = 0
    ) -> None:
        self.number, self.after, self.unheard_s = number, after, unheard_s
        self.done: dict[str, int] = {}
        self._left = list(groups)
        self._received = (-1, 0.0)

    def __call__(self, supervisor: Supervisor) -> None:
        frames = sum(
            n for process in supervisor.processes for (name, _), n in process.counts().items() if name == "frames"
        )
        processes = {process.plan.name: process for process in supervisor.processes}
        if not processes or (self._left and self._received_from(processes[self._left[0][0]])):
            return
        back = all(processes[name].state == "running" and processes[name].pid != pid for name, pid in self.done.items())
        if self._left and frames > self.after and back and all(processes[name].pid for name in self._left[0]):
            for name in self._left.pop(0):
                self.done[name] = processes[name].pid
                hit(processes[name].pid, self.number)

    def _received_from(self, process: Process) -> bool:
        """Whether it has told of frames just now."""
        frames = sum(n for (name, _), n in process.counts().items() if name == "frames")
        if frames != self._received[0]:
            self._received = frames, time.monotonic()
        return time.monotonic() < self._received[1] + self.unheard_s


def tries(folder: Path) -> Iterator[Path]:
    """A folder for each run: on a busy machine, one is over before it was seen to be silent."""
    for number in range(8):
        (folder / f"{number}").mkdir()
        yield folder / f"{number}"


class StopOnce:
    """A second stop would give up what is on its way."""

    def __init__(self) -> None:
        self._done = False

    def __call__(self, supervisor: Supervisor, *, when: bool) -> None:
        if when and not self._done:
            self._done = True
            supervisor.stop()


@pytest.mark.parametrize(
    "victims",
    [
        # One after the other, so that each dies alone; the first is nearer to the source, and the second waits for it.
        [["src.a"], ["both.0"]],
        [["left.0"], ["emit.0"]],
        [["model.0"], ["outbox.0"]],
        [["thin.0"], ["timed.0"]],
        [["left.0", "model.0", "both.0"]],
        [["src.a", "left.0"]],
    ],
    ids=str,
)
def test_death_of_stateless_process_loses_nothing(tmp_path: Path, expected: Any, victims: list[list[str]]) -> None:
    harm = Harm(*victims)
    outcome, status = run_graph(load_plan(write(tmp_path, frames=150, pace_ms=16)), harm)
    killed = {name for group in victims for name in group}
    assert set(harm.done) == killed
    assert (outcome.status, outcome.problems) == (0, [])
    assert results(tmp_path) == expected(150)
    assert sum(stage["restarts"] for stage in status["stages"].values()) >= len(killed - {"src.a"})
    assert nothing_left()


@pytest.mark.parametrize(
    "victims",
    [["src.a", "both.0"], ["src.a", "thin.0", "both.0"], ["src.a", "left.0", "model.0", "thin.0", "both.0"]],
    ids=str,
)
def test_nobody_waits_for_the_partners_of_what_was_done(tmp_path: Path, expected: Any, victims: list[str]) -> None:
    """More than a window of frames was done since the source last heard of it: they come again, on one side alone."""
    for folder in tries(tmp_path):
        harm = Harm(victims, unheard_s=0.18)
        outcome, _ = run_graph(load_plan(write(folder, frames=300, pace_ms=8)), harm)
        assert (outcome.status, outcome.problems) == (0, [])
        assert results(folder) == expected(300)
        if harm.done:
            break
    assert set(harm.done) == set(victims)


def test_stop_during_death_cuts_between_frames(tmp_path: Path, expected: Any) -> None:
    for folder in tries(tmp_path):
        harm, stop = Harm(["src.a"], unheard_s=0.1), StopOnce()

        def kill_and_stop(supervisor: Supervisor, harm: Harm = harm, stop: StopOnce = stop) -> None:
            harm(supervisor)
            stop(supervisor, when=bool(harm.done))

        outcome, status = run_graph(load_plan(write(folder, frames=300, pace_ms=8)), kill_and_stop)
        if harm.done:
            break
    assert harm.done
    assert (outcome.status, outcome.problems) == (0, [])
    assert status["cameras"]["a"]["drops"] == 0
    got, whole = (
        [line for line in found if line.startswith("a ")] for found in (lines(folder / "numbers"), expected(300)[0])
    )
    assert 0 < len(got) < len(whole)
    assert got == sorted(whole, key=lambda line: int(line.split()[2]))[: len(got)]


def test_what_a_stateful_stage_lost_is_said(tmp_path: Path, expected: Any) -> None:
    harm = Harm(["sum.0"])

    def once_it_remembers(supervisor: Supervisor) -> None:
        if harm.done or supervisor.status().stages.get("sum", StageStatus()).items > 60:
            harm(supervisor)

    outcome, status = run_graph(load_plan(write(tmp_path, frames=300, pace_ms=4)), once_it_remembers)
    assert outcome.status == 1
    assert outcome.problems == ["sum lost its state (signal 9) and began anew"]
    numbers, timed = results(tmp_path)
    reference_numbers, reference_timed = expected(300)
    assert numbers == reference_numbers
    assert timed != reference_timed
    assert [line.split()[:3] for line in timed] == [line.split()[:3] for line in reference_timed]
    assert all(status["actions"][camera]["camgraph.stage.restarted"] == 1 for camera in ("a", "b", "c"))


def test_a_frozen_process_is_treated_as_dead(tmp_path: Path, expected: Any) -> None:
    path = write(tmp_path, frames=200, pace_ms=4)
    path.write_text(path.read_text() + "hang_s: 1.5\n")
    harm = Harm(["model.0"], number=signal.SIGSTOP)
    outcome, status = run_graph(load_plan(path), harm)
    assert harm.done
    assert (outcome.status, outcome.problems) == (0, [])
    assert results(tmp_path) == expected(200)
    assert status["stages"]["model"]["restarts"] == 1


def test_a_stop_lets_what_is_on_the_way_arrive(tmp_path: Path) -> None:
    stop = StopOnce()

    def once_it_runs(supervisor: Supervisor) -> None:
        stop(supervisor, when=supervisor.status().cameras["a"].frames > 20)

    outcome, status = run_graph(load_plan(write(tmp_path, frames=100_000, pace_ms=4)), once_it_runs)
    assert (outcome.status, outcome.problems) == (0, [])
    assert status["cameras"]["a"]["state"] == "stopped"
    seen = [int(line.split()[2]) for line in lines(tmp_path / "numbers") if line.startswith("a")]
    assert seen == list(range(0, 3 * len(seen), 3))
    assert abs(3 * len(seen) - status["cameras"]["a"]["frames"]) <= 3
    assert nothing_left()


CHAIN = """
version: 1
name: {name}
cameras: {cameras}
stages:
  src: {{use: count_source}}
  bad: {{use: crash, from: src, with: {crash}}}
  out: {{use: collect, from: bad, with: {{path: numbers}}}}
"""


def chain(folder: Path, crash: dict[str, Any], cameras: dict[str, Any] | None = None) -> Path:
    path = folder / "chain.yaml"
    cameras = cameras or {"a": {"frames": 40, "pace_ms": 2}, "b": {"frames": 40, "pace_ms": 2}}
    path.write_text(CHAIN.format(name=f"t{os.getpid()}", cameras=json.dumps(cameras), crash=json.dumps(crash)))
    return path


@pytest.mark.parametrize("how", ["exit", "kill", "segfault"])
def test_an_item_that_kills_once_is_not_lost(tmp_path: Path, how: str) -> None:
    outcome, _ = run_graph(load_plan(chain(tmp_path, {"at_seq": 5, "camera": "a", "how": how, "marker": "once"})))
    assert (outcome.status, outcome.problems) == (0, [])
    assert len(lines(tmp_path / "numbers")) == 80


def test_poison_item_is_quarantined_alone(tmp_path: Path) -> None:
    outcome, status = run_graph(load_plan(chain(tmp_path, {"at_seq": 5, "camera": "a", "how": "segfault"})))
    assert outcome.problems == ["frames dropped (1 of a): processes died while they worked on them"]
    assert outcome.status == 1
    assert status["stages"]["bad"]["restarts"] == 5
    assert len(lines(tmp_path / "numbers")) == 79


@pytest.mark.parametrize(("how", "reason"), [("raise", "error"), ("bad_item", "told")])
def test_an_item_that_cannot_be_processed_costs_nothing_else(tmp_path: Path, how: str, reason: str) -> None:
    outcome, status = run_graph(load_plan(chain(tmp_path, {"at_seq": 5, "camera": "a", "how": how})))
    assert len(lines(tmp_path / "numbers")) == 79
    assert status["cameras"]["a"]["drops_by_reason"] == {reason: 1}
    assert status["cameras"]["b"]["drops"] == 0
    assert outcome.status == 1
    assert outcome.problems[0].startswith("frames dropped (1 of a): ")


def test_the_users_mistake_ends_the_run(tmp_path: Path) -> None:
    outcome, _ = run_graph(load_plan(chain(tmp_path, {"at_seq": 5, "how": "user_error"})))
    assert (outcome.status, outcome.problems) == (2, ["told to be the user's mistake"])
    assert nothing_left()


@pytest.mark.parametrize(("bad", "status"), [(["a"], 1), (["a", "b"], 2)])
def test_a_camera_that_cannot_be_opened_does_not_cost_the_others(tmp_path: Path, bad: list[str], status: int) -> None:
    cameras = {name: {"frames": 30, "fail": "no such thing" if name in bad else ""} for name in ("a", "b")}
    outcome, _ = run_graph(load_plan(chain(tmp_path, {"at_seq": 999}, cameras)))
    assert outcome.status == status
    assert outcome.problems == [f"camera {name}: no such thing" for name in bad]
    assert len(lines(tmp_path / "numbers")) == 30 * (2 - len(bad))


@st.composite
def random_graphs(draw: st.DrawFn) -> str:
    """Chains, fan-outs and diamonds of stateless stages behind one source, every end in a file."""
    stages = ["  s0: {use: count_source}"]
    made = ["s0"]
    for number in range(1, draw(st.integers(2, 5))):
        sender = draw(st.sampled_from(made))
        depth = f"from: {{stage: {sender}, depth: {draw(st.integers(1, 4))}}}"
        use = draw(st.sampled_from(["double", "null_model", "thin", "pair"]))
        if use == "pair":
            stages.append(f"  s{number}: {{use: pair, from: {{left: {sender}, right: {draw(st.sampled_from(made))}}}}}")
        elif use == "null_model":
            threads, batch = draw(st.integers(1, 3)), draw(st.integers(1, 5))
            stages.append(f"  s{number}: {{use: null_model, {depth}, threads: {threads}, batch: {{max: {batch}}}}}")
        else:
            stages.append(f"  s{number}: {{use: {use}, {depth}, workers: {draw(st.integers(1, 2))}}}")
        made.append(f"s{number}")
    read = {name for name in made for stage in stages if f": {name}," in stage or f": {name}}}" in stage}
    for name in made[1:]:
        if name not in read or draw(st.booleans()):
            stages.append(f"  out_{name}: {{use: collect, from: {name}, with: {{path: {name}}}}}")
    return "\n".join(stages)


@settings(max_examples=int(os.environ.get("CAMGRAPH_RANDOM_GRAPHS", "6")),
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])  # fmt: skip
@given(random_graphs(), st.sampled_from(["separate", "compact"]), st.data())
def test_random_graphs_come_to_their_end_with_the_same_results(
    tmp_path_factory: pytest.TempPathFactory, stages: str, processes: str, data: st.DataObject
) -> None:
    def run(how: str, during: Callable[[Supervisor], None] | None) -> dict[str, list[str]]:
        folder = tmp_path_factory.mktemp("random")
        head = f"version: 1\nname: t{os.getpid()}\nprocesses: {how}\n"
        cameras = "cameras: {a: {frames: 60, bytes: 20000, pace_ms: 12}, b: {frames: 30, pace_ms: 24}}\n"
        (folder / "graph.yaml").write_text(f"{head}{cameras}stages:\n{stages}\n")
        plan = load_plan(folder / "graph.yaml")
        outcome, _ = run_graph(plan, during)
        assert (outcome.status, outcome.problems) == (0, [])
        return {path.name: sorted(lines(path)) for path in folder.iterdir() if path.suffix != ".yaml"}

    victim = data.draw(st.sampled_from(["", "s0.a", "s1.0"]), label="killed")
    assert run(processes, Harm([victim], after=10) if victim else None) == run("one", None)
    assert nothing_left()


MERGE = """
version: 1
name: {name}
processes: {processes}
cameras: {{a: {{frames: 40}}, b: {{frames: 30}}}}
stages:
  src: {{use: count_source}}
  left: {{use: double, from: src}}
  right: {{use: thin, from: src, with: {{every: 3}}}}
  sum: {{use: running_sum, from: [left, right]}}
  out: {{use: collect, from: sum, with: {{path: out}}}}
"""


def test_merge_is_ordered_and_complete(tmp_path: Path) -> None:
    seen = []
    for number, processes in enumerate(("one", "separate", "compact")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "g.yaml").write_text(MERGE.format(name=f"t{os.getpid()}", processes=processes))
        outcome, _ = run_graph(load_plan(folder / "g.yaml"))
        assert (outcome.status, outcome.problems) == (0, [])
        seen.append(sorted((folder / "out").read_text().splitlines()))
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0]) == 40 + 14 + 30 + 10


def test_unfinished_frames_survive_source_and_reader_death(tmp_path: Path) -> None:
    path = chain(tmp_path, {"at_seq": 999}, {"a": {"frames": 40, "pace_ms": 10}})
    path.write_text(
        path.read_text().replace(
            'use: crash, from: src, with: {"at_seq": 999}', "use: null_model, from: src, with: {cost_ms: 150}"
        )
    )
    killed: list[str] = []

    def harm(supervisor: Supervisor) -> None:
        processes = {process.plan.name: process for process in supervisor.processes}
        source, reader = processes["src.a"], processes["bad.0"]
        if not killed and any(n > 5 for n in source.counts().values()):
            hit(source.pid, signal.SIGKILL)
            killed.append("source")
        elif killed == ["source"] and source.incarnation == 2 and any(n > 2 for _, _, n in source.heartbeat.counts):
            hit(reader.pid, signal.SIGKILL)
            killed.append("reader")

    outcome, _ = run_graph(load_plan(path), harm)
    assert killed == ["source", "reader"]
    assert (outcome.status, outcome.problems) == (0, [])
    assert [int(line.split()[2]) for line in lines(tmp_path / "numbers")] == list(range(40))


def test_a_running_graph_answers_on_its_control_socket(tmp_path: Path) -> None:
    answers: dict[str, Any] = {}

    def look(supervisor: Supervisor) -> None:
        if not answers and supervisor.status().cameras["a"].frames > 10:
            asking = threading.Thread(target=talk, args=(supervisor.folder.name,))
            asking.start()

    def talk(name: str) -> None:
        for op in ("status", "metrics", "stop"):
            answers[op] = ask(name, op)

    outcome, _ = run_graph(load_plan(write(tmp_path, frames=100_000, pace_ms=4)), look)
    assert (outcome.status, outcome.problems) == (0, [])
    assert answers["status"]["cameras"]["a"]["frames"] > 10
    assert ["frames", "a", answers["metrics"]["cameras"]["a"]["frames"]] in answers["metrics"]["counts"]
    assert answers["stop"] == {"ok": True}
