"""The proof: a farm, a graph on it, some rounds of faults, and what of all that must not be."""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.errors import EXIT_GAVE_UP, CamgraphError
from tools.farm import Farm
from tools.farm.gstreamer import GStreamerServer, what_is_missing
from tools.live_faults.cameras import CLIP, FPS, USER, WRONG, Patient, kinds, settings_of
from tools.live_faults.cases import CASES, DETECTED_S
from tools.live_faults.graph import environment, write_graph
from tools.live_faults.observed_run import ObservedRun
from tools.live_faults.processes import Sample, grown, sample
from tools.live_faults.rates import LEAST_S, MOST_STRANGERS, Others, others_of
from tools.live_faults.rounds import all_well, go_through, wait_until
from tools.live_faults.trial import Result

START_S = 120.0
LEAST_PERCENT = 95.0
MEMORY_MB = 16.0
"""So much more may one process have after than before: other codecs and sizes were decoded, allocators keep some."""
_QUIET_S = 20.0
_LOOK_S = 0.2


@dataclass
class FaultProof:
    """What was found. ``others``: the worst off of the other cameras, around each of ``results``."""

    cameras: int
    rounds: int
    at_once: int
    processes: str = "separate"
    results: list[Result] = field(default_factory=list)
    others: list[Others] = field(default_factory=list)
    others_began_s: float = 0.0
    wrong_told_s: float | None = None
    wrong_tries: int = 0
    samples: list[Sample] = field(default_factory=list)
    grown: list[str] = field(default_factory=list)
    disclosed: dict[str, int] = field(default_factory=dict)
    searched: dict[str, int] = field(default_factory=dict)
    died: list[str] = field(default_factory=list)
    unpaired: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    status: int = EXIT_GAVE_UP
    broke: str = ""
    left: list[str] = field(default_factory=list)
    seconds: float = 0.0
    loads: list[float] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """All that should not be, in words."""
        found = [f"{one.case} on {one.camera}: {problem}" for one in self.results for problem in one.problems]
        found += [f"it was not gone through to the end: {self.broke}"] if self.broke else []
        for one, others in zip(self.results, self.others, strict=not self.broke):
            found += [f"{one.case} on {one.camera}: another camera had {what}" for what in _too_few(others)]
        if self.wrong_told_s is None or self.wrong_told_s > DETECTED_S:
            found.append(f"a wrong password: `unauthorised` told after {self.wrong_told_s} s")
        found += [f"leak: {what}" for what in self.grown]
        found += [f"a password stood in {place} ({n})" for place, n in self.disclosed.items()]
        found += [f"a process died: {what}" for what in self.died]
        found += [f"one loss is one `lost` and one `back`: {what}" for what in self.unpaired]
        found += [f"left over: {what}" for what in self.left]
        # One camera was never to be had, and that is said.
        if self.status != EXIT_GAVE_UP or len(self.said) != 1 or WRONG not in self.said[0]:
            found.append(f"the run ended with {self.status} and said {self.said}")
        return found


def is_ours(others: Others) -> bool:
    """Whether the machine was there for this run: only then a frame that was passed over is the run's fault."""
    return others.strangers <= MOST_STRANGERS


def _too_few(others: Others) -> Iterator[str]:
    if is_ours(others) and others.came < LEAST_PERCENT:
        yield f"{others.came:.1f} % of its frames"
    if others.known < LEAST_PERCENT:
        yield f"{others.known:.1f} % of its frames, and the rest was not counted as dropped"


def prove(cameras: int, rounds: int, at_once: int, processes: str, told: Callable[[Result], None]) -> FaultProof:
    """Go through all faults. Raises CamgraphError where the farm cannot even begin."""
    proof, begun_s = FaultProof(cameras, rounds, at_once, processes), time.monotonic()
    password, wrong = (f"{word}/{secrets.token_hex(6)}#" for word in ("right", "wrong"))
    name = f"faults{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="camgraph-") as folder, _patients(cameras, password) as patients:
        graph = write_graph(Path(folder), name, processes, patients)
        with ObservedRun(graph, name, environment(password, wrong), [password, wrong]) as run:
            try:
                _go(run, patients, proof, told)
            except CamgraphError as error:
                proof.broke = str(error)
            proof.status = run.stop()
        proof.died, proof.said = run.record.deaths, run.said
        proof.disclosed, proof.searched = run.disclosure.found, dict(run.disclosure.searched)
        proof.left = [path.name for path in Path("/dev/shm").glob(f"camgraph-*-{name}-*")]  # noqa: S108 - where they are
    proof.seconds = time.monotonic() - begun_s
    return proof


@contextmanager
def _patients(cameras: int, password: str) -> Iterator[list[Patient]]:
    """The cameras, of which one refuses; and GStreamer's, where it is installed."""
    with ExitStack() as stack:
        names = kinds(cameras)
        farm = stack.enter_context(Farm(settings_of(names, password)))
        patients = [Patient(name, kind, farm.camera(name)) for name, kind in names.items()]
        next(patient for patient in patients if patient.kind == "absent").farm.refuse()
        if what_is_missing() is None:
            server = GStreamerServer(CLIP, auth="digest", account=(USER, password))
            patients.append(Patient("other", "server", server=stack.enter_context(server)))
        yield patients


def _go(run: ObservedRun, patients: Sequence[Patient], proof: FaultProof, told: Callable[[Result], None]) -> None:
    seen = [patient for patient in patients if patient.kind != "wrong"]
    since_s = _begin(run, [patient for patient in seen if patient.kind != "absent"], proof)
    _do_rounds(run, seen, proof, told)
    end_s = time.monotonic() + LEAST_S
    wait_until(run, lambda: time.monotonic() > end_s, LEAST_S + START_S, "the time after the last fault")
    names = [patient.name for patient in seen]
    proof.unpaired = [f"{name}: {what}" for name in names if (what := run.record.unpaired(name))]
    cores = len(os.sched_getaffinity(0))
    proof.others = [
        others_of(one, proof.results, run.record, names, since_s=since_s, fps=FPS, cores=cores) for one in proof.results
    ]
    _look_at_wrong(run, next(patient for patient in patients if patient.kind == "wrong"), proof)
    proof.grown = _grown(run, proof.samples[0], proof.samples[-1])


def _begin(run: ObservedRun, patients: Sequence[Patient], proof: FaultProof) -> float:
    """Wait for those who are not absent; from when on all of them are well."""
    wait_until(run, lambda: run.record.running_s > 0, START_S, "the start of the graph")
    wait_until(run, lambda: all_well(run, patients), START_S, "the cameras that are not absent")
    first_s = [run.record.frames[patient.name][0].at_s for patient in patients]
    proof.others_began_s = max(first_s) - run.record.running_s
    return time.monotonic()


def _do_rounds(
    run: ObservedRun, patients: Sequence[Patient], proof: FaultProof, told: Callable[[Result], None]
) -> None:
    """The absent camera first: a sample of a run that lacks one would not be what the others are held against."""
    movable = [patient for patient in patients if patient.kind != "witness"]
    kinds_here = {patient.kind for patient in movable}
    cases = [case for case in CASES if not case.at_start and case.kinds & kinds_here]
    proof.results += go_through(run, [case for case in CASES if case.at_start], movable, proof.at_once, told)
    proof.samples.append(_sample_when_well(run, patients, ()))
    for number in range(proof.rounds):
        turned = movable[number % len(movable) :] + movable[: number % len(movable)]
        proof.results += go_through(run, cases, turned, proof.at_once, told)
        proof.loads.append(os.getloadavg()[0])
        proof.samples.append(_sample_when_well(run, patients, proof.samples))


def _look_at_wrong(run: ObservedRun, patient: Patient, proof: FaultProof) -> None:
    told_s = [
        run.record.first(patient.name, "log", {"unauthorised"}, 0),
        run.record.first(patient.name, "event", {"unauthorised"}, 0),
    ]
    is_so = run.record.look(patient.name).state == "unauthorised"
    known = [t for t in told_s if t is not None]
    proof.wrong_told_s = max(known) - run.record.running_s if is_so and len(known) == len(told_s) else None
    proof.wrong_tries = patient.farm.counts().connections


def _sample_when_well(run: ObservedRun, patients: Sequence[Patient], before: Sequence[Sample]) -> Sample:
    """Of the run now: what closes by itself has some time for it."""
    wait_until(run, lambda: all_well(run, patients), START_S, "all cameras after the faults")
    late = time.monotonic() + _QUIET_S
    while True:
        run.look()
        now = sample(run.pid, run.name)
        if not before or not _grown(run, before[0], now) or time.monotonic() > late:
            return now
        time.sleep(_LOOK_S)


def _grown(run: ObservedRun, before: Sample, after: Sample) -> list[str]:
    """Of all but the one that is connected to again and again."""
    but = {f"{run.name}/capture.{WRONG}"}
    return grown(before.without(but), after.without(but), memory_mb=MEMORY_MB)
