"""The proof: a simulator, a graph on it, some rounds of faults, and the conditions that must hold."""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from camgraph.pipeline.errors import EXIT_DONE, CamgraphError
from camgraph.tools.lab.gstreamer import GStreamerServer, missing_packages
from camgraph.tools.lab.proofs.live_faults.cameras import CLIP, FPS, USER, WRONG, Kind, Patient, kinds, settings_of
from camgraph.tools.lab.proofs.live_faults.cases import CASES, DETECTED_S
from camgraph.tools.lab.proofs.live_faults.observed_run import ObservedRun
from camgraph.tools.lab.proofs.live_faults.rates import LEAST_S, Base, Others, base_of, hurt, others_of
from camgraph.tools.lab.proofs.live_faults.rounds import all_well, go_through, wait_until
from camgraph.tools.lab.proofs.live_faults.trial import Result
from camgraph.tools.lab.proofs.trials.subject import Subject, write_graph
from camgraph.tools.measuring.processes import Member, Sample, left_over, sample
from camgraph.tools.measuring.processor_time import CpuTime, cpu_time
from camgraph.tools.scenes.simulator import RtspSimulator

START_S = 120.0
LEAST_PERCENT = 95.0
MEMORY_MB = 16.0
"""How much one process may gain by the faults: other codecs and sizes were decoded, and allocators keep memory."""
BASE_S = 20.0
_QUIET_S = 20.0
_LOOK_S = 0.2
_VARIABLES: Mapping[Kind, str] = {"wrong": "FAULTS_WRONG_PASSWORD"}


@dataclass
class FaultProof:
    """The findings. ``base``: rates before any fault; ``others``: the lowest of the other cameras, around
    each of ``results``; ``hurt``: cameras that were lost while nothing was done to them."""

    cameras: int
    rounds: int
    at_once: int
    processes: str = "separate"
    results: list[Result] = field(default_factory=list)
    base: Base | None = None
    others: list[Others] = field(default_factory=list)
    hurt: list[str] = field(default_factory=list)
    others_began_s: float = 0.0
    wrong_reported_s: float | None = None
    wrong_tries: int = 0
    samples: list[Sample] = field(default_factory=list)
    grown: list[str] = field(default_factory=list)
    disclosed: dict[str, int] = field(default_factory=dict)
    searched: dict[str, int] = field(default_factory=dict)
    died: list[str] = field(default_factory=list)
    unpaired: list[str] = field(default_factory=list)
    problems_reported: list[str] = field(default_factory=list)
    status: int = EXIT_DONE
    broke: str = ""
    left: list[str] = field(default_factory=list)
    seconds: float = 0.0
    work: list[CpuTime] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """All that is wrong, in words."""
        found = [f"{one.case} on {one.camera}: {problem}" for one in self.results for problem in one.problems]
        found += [f"it was not gone through to the end: {self.broke}"] if self.broke else []
        for one, others in zip(self.results, self.others, strict=not self.broke):
            found += [f"{one.case} on {one.camera}: another camera had {what}" for what in _too_few(others)]
        if self.wrong_reported_s is None or self.wrong_reported_s > DETECTED_S:
            found.append(f"a wrong password: `unauthorised` told after {self.wrong_reported_s} s")
        found += self.hurt
        found += [f"leak: {what}" for what in self.grown]
        found += [f"a password stood in {place} ({n})" for place, n in self.disclosed.items()]
        found += [f"a process died: {what}" for what in self.died]
        found += [f"one loss is one `lost` and one `back`: {what}" for what in self.unpaired]
        found += [f"left over: {what}" for what in self.left]
        # One camera has a wrong password: the run must report that and nothing else, and end in order.
        if self.status != EXIT_DONE or len(self.problems_reported) != 1 or WRONG not in self.problems_reported[0]:
            found.append(f"the run ended with {self.status} and said {self.problems_reported}")
        return found

    @property
    def not_judged(self) -> list[str]:
        """What could not be judged, and so is not proven; [] if all was judged."""
        reasons = [one.not_judged for one in self.others if one.not_judged]
        message = f"the others' rate was not judged around {len(reasons)} of {len(self.others)} faults"
        return [f"{message}: {max(reasons)}"] if reasons else []


def _too_few(others: Others) -> Iterator[str]:
    if not others.not_judged and others.rate < LEAST_PERCENT:
        yield f"{others.rate:.1f} % of its rate before"
    if others.accounted < LEAST_PERCENT:
        yield f"{others.accounted:.1f} % of its frames, and the rest was not counted as dropped"


def prove(
    cameras: int, rounds: int, at_once: int, processes: str, report: Callable[[Result], None], *, base_s: float = BASE_S
) -> FaultProof:
    """Go through all faults, once the rates without any were measured for ``base_s``.

    Raises CamgraphError if the simulator cannot even begin.
    """
    proof, begun_s = FaultProof(cameras, rounds, at_once, processes), time.monotonic()
    password, wrong = (f"{word}/{secrets.token_hex(6)}#" for word in ("right", "wrong"))
    name = f"faults{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="camgraph-") as folder, _patients(cameras, password) as patients:
        subject = write_subject(Path(folder), name, processes, patients)
        with ObservedRun(subject, environment(password, wrong), [password, wrong]) as run:
            try:
                _go(run, patients, proof, report, base_s)
            except CamgraphError as error:
                proof.broke = str(error)
            proof.work = [*run.record.work, cpu_time()]
            proof.status = run.stop()
        proof.died, proof.problems_reported = run.record.deaths, run.problems_reported
        proof.disclosed, proof.searched = run.disclosure.found, dict(run.disclosure.searched)
        proof.left = left_over(name)
    proof.seconds = time.monotonic() - begun_s
    return proof


@contextmanager
def _patients(cameras: int, password: str) -> Iterator[list[Patient]]:
    """The cameras, one of which refuses; and GStreamer's, if it is installed."""
    with ExitStack() as stack:
        names = kinds(cameras)
        simulator = stack.enter_context(RtspSimulator(settings_of(names, password)))
        patients = [Patient(name, kind, simulator.camera(name)) for name, kind in names.items()]
        next(patient for patient in patients if patient.kind == "absent").simulator.refuse()
        if missing_packages() is None:
            server = GStreamerServer(CLIP, auth="digest", account=(USER, password))
            patients.append(Patient("other", "server", server=stack.enter_context(server)))
        yield patients


def _go(
    run: ObservedRun, patients: Sequence[Patient], proof: FaultProof, report: Callable[[Result], None], base_s: float
) -> None:
    seen = [patient for patient in patients if patient.kind != "wrong"]
    proof.base = _begin(run, [patient for patient in seen if patient.kind != "absent"], proof, base_s)
    _do_rounds(run, seen, proof, report)
    end_s = time.monotonic() + LEAST_S
    wait_until(run, lambda: time.monotonic() > end_s, LEAST_S + START_S, "the time after the last fault")
    names = [patient.name for patient in seen]
    proof.unpaired = [f"{name}: {what}" for name in names if (what := run.record.unpaired(name))]
    proof.others = [
        others_of(one, proof.results, run.record, proof.base, cameras=names, fps=FPS) for one in proof.results
    ]
    proof.hurt = hurt(proof.results, run.record, names)
    _look_at_wrong(run, next(patient for patient in patients if patient.kind == "wrong"), proof)
    proof.grown = _grown(proof.samples[0], proof.samples[-1])


def _begin(run: ObservedRun, patients: Sequence[Patient], proof: FaultProof, base_s: float) -> Base:
    """Wait for the cameras that are not absent, and measure their rates while nothing is done to them."""
    wait_until(run, lambda: run.record.running_s > 0, START_S, "the start of the graph")
    wait_until(run, lambda: all_well(run, patients), START_S, "the cameras that are not absent")
    first_s = [run.record.frames[patient.name][0].at_s for patient in patients]
    proof.others_began_s = max(first_s) - run.record.running_s
    run.record.well_s = begin_s = time.monotonic()
    # A second more, because frames that were filmed meanwhile are still on their way.
    wait_until(run, lambda: time.monotonic() > begin_s + base_s + 1, base_s + START_S, "the time before any fault")
    return base_of(run.record, [patient.name for patient in patients], begin_s, begin_s + base_s)


def _do_rounds(
    run: ObservedRun, patients: Sequence[Patient], proof: FaultProof, report: Callable[[Result], None]
) -> None:
    """The absent camera first: the others are compared with a sample of the run, which must not lack a camera."""
    movable = [patient for patient in patients if patient.kind != "witness"]
    kinds_here = {patient.kind for patient in movable}
    cases = [case for case in CASES if not case.at_start and case.kinds & kinds_here]
    proof.results += go_through(run, [case for case in CASES if case.at_start], movable, proof.at_once, report)
    proof.samples.append(_sample_when_well(run, patients, ()))
    for number in range(proof.rounds):
        turned = movable[number % len(movable) :] + movable[: number % len(movable)]
        proof.results += go_through(run, cases, turned, proof.at_once, report)
        proof.samples.append(_sample_when_well(run, patients, proof.samples))


def _look_at_wrong(run: ObservedRun, patient: Patient, proof: FaultProof) -> None:
    reported_s = [
        run.record.first(patient.name, "log", {"unauthorised"}, 0),
        run.record.first(patient.name, "event", {"unauthorised"}, 0),
    ]
    is_so = run.record.look(patient.name).state == "unauthorised"
    known = [t for t in reported_s if t is not None]
    proof.wrong_reported_s = max(known) - run.record.running_s if is_so and len(known) == len(reported_s) else None
    proof.wrong_tries = patient.simulator.counts().connections


def _sample_when_well(run: ObservedRun, patients: Sequence[Patient], before: Sequence[Sample]) -> Sample:
    """Sample the run, after some time in which connections that are over can close."""
    wait_until(run, lambda: all_well(run, patients), START_S, "all cameras after the faults")
    late = time.monotonic() + _QUIET_S
    while True:
        run.look()
        now = sample(run.pid, run.subject.name)
        if not before or not _grown(before[0], now) or time.monotonic() > late:
            return now
        time.sleep(_LOOK_S)


def _grown(before: Sample, after: Sample) -> list[str]:
    """The growth of all processes but the one that connects again and again."""
    return grown(before, after, memory_mb=MEMORY_MB, but=f"capture.{WRONG}")


def write_subject(folder: Path, name: str, processes: str, patients: Sequence[Patient]) -> Subject:
    """The graph file that the cameras are in, and the model beside it: all of the way from packets to events, which
    tell of every single frame. Passwords stand in the environment (`environment`).

    ``processes``: how the stages are placed, `separate` or `compact`.
    """
    return write_graph(folder, name, [_camera(one) for one in patients], processes=processes, every_frame=True)


def environment(password: str, wrong: str) -> dict[str, str]:
    """The variables of the graph file."""
    return {"FAULTS_PASSWORD": password, "FAULTS_WRONG_PASSWORD": wrong}


def _camera(patient: Patient) -> str:
    variable = _VARIABLES.get(patient.kind, "FAULTS_PASSWORD")
    url = f"rtsp://{USER}:${{{variable}}}@127.0.0.1:{patient.port}/{patient.path}"
    return f'{patient.name}: {{url: "{url}", transport: {"udp" if patient.kind == "udp" else "tcp"}}}'


def grown(before: Sample, after: Sample, *, memory_mb: float, but: str = "") -> list[str]:
    """The resources of which a run holds more after the faults than before them, in words. Pure.

    A process may gain ``memory_mb``; the process ``but`` is left out.
    """
    old, new = (_by_process(one, but) for one in (before, after))
    found = [f"{name}: new" for name in new.keys() - old.keys()]
    found += [f"{name}: gone" for name in old.keys() - new.keys()]
    for name in old.keys() & new.keys():
        found += [f"{name}: {what}" for what in _more(old[name], new[name], memory_mb, len(new))]
    if after.shm_files > before.shm_files:
        found.append(f"segments {before.shm_files} -> {after.shm_files}")
    if after.zombies:
        found.append(f"zombies: {len(after.zombies)}")
    return sorted(found)


def _by_process(one: Sample, but: str) -> Mapping[str, Member]:
    return {member.process: member for member in one.living if member.process != but}


def _more(old: Member, new: Member, memory_mb: float, processes: int) -> Iterator[str]:
    """Outgrown segments are bounded by the number of senders, whatever they were before."""
    had, has = old.descriptors - old.outgrown, new.descriptors - new.outgrown
    if has > had:
        yield f"descriptors {had} -> {has}: {dict(Counter(new.open) - Counter(old.open))}"
    if new.outgrown > processes:
        yield f"{new.outgrown} segments that are no more"
    if new.threads > old.threads:
        yield f"threads {old.threads} -> {new.threads}"
    if new.own_kb > old.own_kb + memory_mb * 1000:
        yield f"memory {old.own_kb / 1000:.1f} -> {new.own_kb / 1000:.1f} MB"
