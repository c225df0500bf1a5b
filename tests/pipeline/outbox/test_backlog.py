"""What waits is bounded for each sink by number, age and size; other sinks and open incidents lose nothing."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from camgraph_test_stages.outboxes import crash, deliver, make_event, open_outbox, pull_ids
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from structlog.testing import capture_logs

from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.outbox.outbox_view import OutboxView
from camgraph.pipeline.testing import reports_of

DAY_S = 86_400.0


def counts(outbox: Outbox) -> dict[tuple[str, str], int]:
    return {key: n for key, n in reports_of(outbox).counts.items() if key[0].startswith("given_up.")}


def maintain(outbox: Outbox, *times: float) -> None:
    for now in times:
        outbox.maintain(now)


def test_the_oldest_are_given_up_for_the_sink_that_is_away(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path, ["log", "crm"], keep_events=10)
    for n in range(25):
        outbox.accept([make_event(n, "front" if n % 2 else "yard")])
        deliver(outbox, "log")
    with capture_logs() as logs:
        maintain(outbox, 0.0, 1.0, 2.0)
    assert pull_ids(outbox, "crm") == [f"e{n}" for n in range(15, 25)]
    assert counts(outbox) == {("given_up.crm", "front"): 7, ("given_up.crm", "yard"): 8}
    assert [(line["event"], line["sink"]) for line in logs] == [("events_given_up", "crm")]
    assert (outbox.backlog["crm"].waiting, outbox.backlog["crm"].given_up) == (10, 15)
    assert (outbox.backlog["log"].waiting, outbox.backlog["log"].given_up) == (0, 0)
    outbox.close()


def test_a_burst_is_logged_at_its_begin_and_at_its_end(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path, keep_events=1)
    with capture_logs() as logs:
        for n in range(20):
            outbox.accept([make_event(n)])
            maintain(outbox, float(n))
        maintain(outbox, 50.0, 90.0, 91.0)
    names = [(line["event"], line.get("events")) for line in logs]
    assert names == [("events_given_up", None), ("events_given_up_until_now", 19)]
    outbox.close()


def test_what_a_sink_has_in_its_hands_is_not_given_up(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path, keep_events=2)
    outbox.accept([make_event(n) for n in range(10)])
    rows = outbox.pull("log", 4)
    maintain(outbox, 0.0)
    assert [event.id for _, event in rows] == ["e0", "e1", "e2", "e3"]
    assert pull_ids(outbox) == [], "all others were given up, and these count as well"
    outbox.acknowledge("log", [row for row, _ in rows])
    outbox.note_delivered()
    assert counts(outbox) == {("given_up.log", "cam"): 6}
    outbox.close()


def test_age_is_the_time_in_which_the_outbox_was_open(tmp_path: Path) -> None:
    """The first process lives for 5 days; the machine is off for years; the next one goes on to count."""
    outbox = open_outbox(tmp_path, keep_days=7)
    outbox.accept([make_event(1)])
    maintain(outbox, 0.0, 3 * DAY_S)
    outbox.accept([make_event(2)])
    maintain(outbox, 5 * DAY_S)
    outbox.close()
    again = open_outbox(tmp_path, run=2, keep_days=7, wall_ns=lambda: 1 << 62)
    maintain(again, 100.0, 100.0 + DAY_S)
    assert again.backlog["log"].waiting == 2
    maintain(again, 100.0 + 2.1 * DAY_S)
    assert pull_ids(again) == ["before 2 e2"]
    assert counts(again) == {("given_up.log", "cam"): 1}
    again.close()


def test_a_clock_that_is_set_makes_no_event_of_this_process_old(tmp_path: Path) -> None:
    """A machine without a clock of its own begins in 1970, and learns the time ten seconds later."""
    clock = [5 * 10**9]
    outbox = open_outbox(tmp_path, wall_ns=lambda: clock[0])
    outbox.accept([make_event(1)])
    maintain(outbox, 0.0)
    outbox.accept([make_event(2)])
    clock[0] = 1_700_000_000 * 10**9
    maintain(outbox, 10.0)
    [first, second] = [event.committed_ns for _, event in outbox.pull("log", 9)]
    assert first == second == clock[0] - 10 * 10**9
    assert outbox.backlog["log"].oldest_s == 10.0
    outbox.db.close()
    again = open_outbox(tmp_path, wall_ns=lambda: clock[0])
    assert again.pull("log", 1)[0][1].committed_ns == 5 * 10**9, "of an earlier process, only the clock tells"
    again.close()


def test_the_file_stays_below_its_size(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path, ["log", "crm"], keep_gb=0.002)
    now = 0.0
    for start in range(0, 2000, 50):
        outbox.accept([make_event(n, size=2000) for n in range(start, start + 50)])
        deliver(outbox, "log")
        for _ in range(3):
            now += 1.0
            maintain(outbox, now)
    assert 300 < outbox.backlog["crm"].waiting < 1000
    left = pull_ids(outbox, "crm")
    assert left == [f"e{n}" for n in range(2000 - len(left), 2000)]
    assert sum(counts(outbox).values()) == 2000 - len(left)
    assert (tmp_path / "outbox.sqlite").stat().st_size < 4e6
    outbox.close()


def test_the_last_event_of_an_open_incident_stays_for_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camgraph.pipeline.outbox.old_events._KEPT", 5)
    outbox = open_outbox(tmp_path, keep_events=3)
    outbox.accept([make_event(0, phase="start", incident="open"), make_event(1, phase="update", incident="open")])
    for n in range(2, 60):
        outbox.accept([make_event(n)])
        maintain(outbox, float(n))
    assert outbox.db.execute("SELECT id FROM events WHERE row < 40").fetchall() == [("1 e1",)]
    outbox.end_lost("rules", ["cam"], 1)
    [*_, last] = [event for _, event in outbox.pull("log", 99)]
    assert (last.incident, last.phase, json.loads(last.body)["data"]["reason"]) == ("open", "end", "lost")
    outbox.close()


def test_events_for_a_removed_sink_are_bounded_too(tmp_path: Path) -> None:
    first = open_outbox(tmp_path, ["log", "gone"])
    first.accept([make_event(n) for n in range(10)])
    deliver(first, "log")
    first.close()
    again = open_outbox(tmp_path, ["log"], run=2, keep_events=4)
    maintain(again, 0.0)
    assert again.backlog["gone"].waiting == 4
    assert counts(again) == {("given_up.gone", "cam"): 6}
    again.close()


class Bounded(RuleBasedStateMachine):
    """A sink that is slow or away, an outbox that dies, and people who requeue and drop events of it.

    Each event is delivered, waits, was dropped or is counted as given up; and each requeue makes one more.
    """

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.seq = self.life = 0
        self.now = 0.0
        self.accepted: list[str] = []
        self.delivered: list[str] = []
        self.given_up = self.requeued = self.dropped = 0
        self.outbox: Outbox
        # no number of the object: the next example may get the same one, and would open this one's outbox
        self.place = Path(tempfile.mkdtemp(dir=self.folder))

    @initialize()
    def begin(self) -> None:
        self._open()

    def _open(self) -> None:
        self.life += 1
        self.outbox = open_outbox(self.place, incarnation=self.life, keep_events=6, sync="none")

    @rule(n=st.integers(1, 9))
    def accept(self, n: int) -> None:
        self.outbox.accept([make_event(seq) for seq in range(self.seq, self.seq + n)])
        self.accepted += [f"e{seq}" for seq in range(self.seq, self.seq + n)]
        self.seq += n

    @rule(n=st.integers(1, 5))
    def deliver(self, n: int) -> None:
        self.delivered += deliver(self.outbox, most=n)

    @rule(n=st.integers(1, 5))
    def hold(self, n: int) -> None:
        self.outbox.pull("log", n)

    @rule()
    def maintain(self) -> None:
        self.now += 1.0
        self.outbox.maintain(self.now)

    @rule(n=st.integers(0, 30))
    def requeue(self, n: int) -> None:
        if self.delivered:
            event_id = self.delivered[n % len(self.delivered)].rpartition(" ")[2]
            self.requeued += self._view.requeue_events("log", [event_id])
            self.maintain()

    @rule(n=st.integers(2, 4))
    def drop(self, n: int) -> None:
        self.dropped += self._view.drop("log", lambda event: event.row % n == 0)
        self.maintain()

    @property
    def _view(self) -> OutboxView:
        return OutboxView(Path(self.outbox.settings.path).parent)

    @rule()
    def die(self) -> None:
        self.given_up += sum(counts(self.outbox).values())
        crash(self.outbox)
        self._open()

    @invariant()
    def nothing_is_missing(self) -> None:
        if not self.life:
            return
        waiting = [event.shown_id for event in self._view.waiting("log", lambda _: True, 1000)]
        given_up = self.given_up + sum(counts(self.outbox).values())
        assert len(self.delivered) == len(set(self.delivered))
        assert not set(waiting) & set(self.delivered)
        left = len(waiting) + len(self.delivered) + given_up + self.dropped
        assert len(self.accepted) + self.requeued == left
        assert self.outbox._deliveries.waiting["log"] == len(waiting)

    def teardown(self) -> None:
        if self.life:
            crash(self.outbox)


@pytest.mark.slow
def test_each_event_is_delivered_or_waits_or_is_counted(tmp_path: Path) -> None:
    Bounded.folder = tmp_path
    case = Bounded.TestCase
    case.settings = settings(max_examples=15, stateful_step_count=15, deadline=None)
    case("runTest").runTest()
