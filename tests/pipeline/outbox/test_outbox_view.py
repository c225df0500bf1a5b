"""People look at an outbox and change it while a run has it, and whatever dies: nothing is lost or doubled."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from camgraph_test_stages.outboxes import crash, deliver, fill, make_event, open_outbox, pull_ids
from camgraph_test_stages.waiting import until

from camgraph.pipeline.dead_letters import DeadLetters
from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.messages import LONGEST_BODY, Event
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.outbox.outbox_view import OutboxView

AT_NS = 1_772_368_205_000_000_000


def own(ids: list[str]) -> list[str]:
    return [name.rpartition(" ")[2] for name in ids]


def bury(folder: Path, *seqs: int, sink: str = "log") -> None:
    letters = DeadLetters(folder, sink)
    for seq in seqs:
        event = make_event(seq).payload
        assert isinstance(event, Event)
        letters.add(event, "400: no such door")


def looked(outbox: Outbox, now: float) -> Outbox:
    """Once it has had the time to notice what others did."""
    outbox.maintain(now)
    return outbox


def test_the_states_of_all_sinks(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path, ["crm", "log"], wall_ns=lambda: AT_NS)
    outbox.accept([make_event(n) for n in range(3)])
    deliver(outbox, "log", 2)
    bury(tmp_path, 7, 8, sink="crm")
    bury(tmp_path, 9, sink="gone")
    states = [(s.sink, s.waiting, s.oldest_ns, s.dead_letters) for s in OutboxView(tmp_path).states()]
    assert states == [("crm", 3, AT_NS, 2), ("gone", 0, 0, 1), ("log", 1, AT_NS, 0)]
    with pytest.raises(UserError, match=r"no sink 'cmr'; did you mean `crm`"):
        OutboxView(tmp_path).sink("cmr")
    outbox.close()


def test_looking_changes_nothing(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path, sync="none")
    outbox.accept([make_event(n) for n in range(3)])
    before = outbox.db.execute("PRAGMA data_version").fetchone()
    view = OutboxView(tmp_path)
    view.states()
    assert [event.id for event in view.waiting("log", lambda _: True, 2)] == ["e0", "e1"]
    assert [(event.id, event.waits_for) for event in view.events("e1")] == [("e1", ("log",))]
    assert outbox.db.execute("PRAGMA data_version").fetchone() == before
    outbox.close()


@pytest.mark.parametrize("ordered", [[], ["log"]])
def test_a_delivered_event_is_handed_out_again(tmp_path: Path, ordered: list[str]) -> None:
    outbox = open_outbox(tmp_path, ["log", "crm"], ordered=ordered)
    outbox.accept([make_event(n) for n in range(4)])
    outbox.end("cam")
    assert len(deliver(outbox, "log")) == 4
    assert OutboxView(tmp_path).requeue_events("log", ["e1", "e2"]) == 2
    assert OutboxView(tmp_path).requeue_events("log", ["e2"]) == 0, "it waits already"
    assert OutboxView(tmp_path).requeue_events("crm", ["e2"]) == 1, "of crm the newer row does not wait"
    looked(outbox, 0.0)
    assert outbox.backlog["log"].waiting == 2
    rows = outbox.pull("log", 9)
    assert [event.id for _, event in rows] == ["again 5 e1", "again 6 e2"]
    assert [event.incident for _, event in rows] == ["i1", "i2"]
    outbox.close()


def test_dead_letters_are_handed_out_again_once(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path, sync="none")
    outbox.accept([make_event(1)])
    bury(tmp_path, 5, 6, 6)
    view = OutboxView(tmp_path)
    assert view.requeue_letters("log", lambda letter: letter.id == "e6") == 1
    assert [letter.id for letter in DeadLetters(tmp_path, "log")] == ["e5"]
    rows = looked(outbox, 0.0).pull("log", 9)
    assert own([event.id for _, event in rows]) == ["e1", "e6"]
    original = make_event(6).payload
    assert isinstance(original, Event)
    assert (rows[1][1].body, rows[1][1].incident, rows[1][1].stamp.seq) == (original.body, "i6", 6)
    assert rows[1][1].committed_ns
    outbox.close()


def test_dead_letters_that_no_sink_could_take_stay(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path, sync="none")
    bury(tmp_path, 5, 6, 7)
    path = DeadLetters(tmp_path, "log").path
    lines = path.read_bytes().splitlines()
    large = lines[1].replace(b'"text":"', b'"text":"' + b"x" * LONGEST_BODY)
    path.write_bytes(b"\n".join([lines[0], large, lines[2].replace(b'"seq": 7', b'"seq": "7"')]) + b"\n")
    with pytest.raises(UserError, match=r"1 events were requeued; the dead letter e6 .*at most 4,000,000 bytes"):
        OutboxView(tmp_path).requeue_letters("log", lambda _: True)
    assert own([event.id for _, event in looked(outbox, 0.0).pull("log", 9)]) == ["e5"]
    assert [letter.id for letter in DeadLetters(tmp_path, "log")] == ["e6"]
    outbox.close()


def test_a_requeue_for_a_removed_sink_is_no_damage(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path)
    outbox.accept([make_event(n) for n in range(3)])
    bury(tmp_path, 7, sink="gone")
    assert OutboxView(tmp_path).requeue_letters("gone", lambda letter: True) == 1
    outbox.close()
    again = open_outbox(tmp_path, run=2)
    assert {state.sink: state.waiting for state in OutboxView(tmp_path).states()} == {"gone": 1, "log": 3}
    assert not list(tmp_path.glob("*.damaged-*"))
    again.close()


def test_a_requeue_outlives_the_run(tmp_path: Path) -> None:
    first = open_outbox(tmp_path, sync="none")
    bury(tmp_path, 5)
    first.close()
    OutboxView(tmp_path).requeue_letters("log", lambda _: True)
    again = open_outbox(tmp_path, run=2)
    again.accept([make_event(5)])
    assert own(deliver(again)) == ["e5", "e5"]
    again.end("cam")
    again.close()


def test_a_requeue_after_a_run_that_left_nothing_else(tmp_path: Path) -> None:
    first = open_outbox(tmp_path, sync="none")
    bury(tmp_path, 5)
    first.end("cam")
    first.close()
    assert list(tmp_path.glob("outbox*")) == []
    assert OutboxView(tmp_path).drop("log", lambda _: True) == 0
    assert OutboxView(tmp_path).requeue_letters("log", lambda _: True) == 1
    assert [(state.waiting, state.dead_letters) for state in OutboxView(tmp_path).states()] == [(1, 0)]
    again = open_outbox(tmp_path, run=2)
    assert own(deliver(again)) == ["e5"]
    again.close()


def test_requeued_ends_and_starts_are_no_incidents(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path, sync="none")
    outbox.accept([make_event(1, phase="start", incident="a"), make_event(2, phase="end", incident="a")])
    outbox.accept([make_event(3, phase="start", incident="b")])
    deliver(outbox)
    OutboxView(tmp_path).requeue_events("log", ["e1"])
    outbox.end_lost("rules", ["cam"], 1)
    ends = [event.incident for _, event in looked(outbox, 0.0).pull("log", 9) if event.phase == "end"]
    assert ends == ["b"]
    outbox.close()


def test_events_since_a_time_are_requeued_once_for_a_sink(tmp_path: Path) -> None:
    clock = itertools.count(AT_NS, 10)
    outbox = open_outbox(tmp_path, sinks=["log"], wall_ns=lambda: next(clock))
    for n in range(5):
        outbox.accept([make_event(n)])
    deliver(outbox, most=4)
    view = OutboxView(tmp_path)
    assert view.requeue_since("log", AT_NS + 20) == 2
    assert view.requeue_since("log", AT_NS + 20) == 0
    assert own(pull_ids(looked(outbox, 0.0))) == ["e4", "e2", "e3"]
    outbox.close()


def test_dropped_events_are_not_handed_out(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path, ["log", "crm"])
    outbox.accept([make_event(n, "front" if n % 2 else "yard") for n in range(500)])
    held = outbox.pull("log", 3)
    assert OutboxView(tmp_path).drop("log", lambda event: event.camera == "yard") == 250
    looked(outbox, 0.0)
    assert outbox.backlog["log"].waiting == 250
    outbox.acknowledge("log", [row for row, _ in held])
    outbox.note_delivered()
    assert own(pull_ids(outbox)) == [f"e{n}" for n in range(3, 500, 2)]
    assert len(pull_ids(outbox, "crm")) == 500, "the other sink still gets them"
    outbox.close()


def test_late_acks_of_dropped_events_leave_the_backlog_right(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path, sync="none")
    outbox.accept([make_event(n) for n in range(10)])
    rows = outbox.pull("log", 4)
    OutboxView(tmp_path).drop("log", lambda _: True)
    outbox.acknowledge("log", [row for row, _ in rows])
    outbox.note_delivered()
    outbox.accept([make_event(11)])
    assert looked(outbox, 0.0).backlog["log"].waiting == 1
    outbox.close()


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "outbox.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(EnvironmentProblem, match=r"is damaged .*the next start of its run sets it aside"):
        OutboxView(tmp_path).states()


def test_a_full_disk_keeps_dead_letters_and_the_run_going(small_disk: Path) -> None:
    outbox = open_outbox(small_disk, keep_events=100)
    outbox.accept([make_event(n, size=2000) for n in range(300)])
    many_letters(small_disk, 3000)
    ballast = fill(small_disk)
    with pytest.raises(EnvironmentProblem, match=r"does not take this now: .*give the command again"):
        OutboxView(small_disk).requeue_letters("log", lambda _: True)
    assert len(list(DeadLetters(small_disk, "log"))) == 3000
    for now in range(20):
        outbox.maintain(float(now))
    assert outbox.backlog["log"].waiting == 100, "to give events up needs no room"
    ballast.unlink()
    deliver(outbox)
    assert OutboxView(small_disk).requeue_letters("log", lambda _: True) > 0
    assert list(DeadLetters(small_disk, "log")) == []
    outbox.close()


def many_letters(folder: Path, count: int) -> None:
    """As if so many events had been given up."""
    bury(folder, 0)
    [letter] = DeadLetters(folder, "log")
    text = letter.line().decode()
    path = DeadLetters(folder, "log").path
    path.write_text("".join(text.replace('"id": "e0"', f'"id": "e{n}"') for n in range(count)))


_REQUEUE = (
    "import sys; from pathlib import Path; from camgraph.pipeline.outbox.outbox_view import OutboxView\n"
    "print(OutboxView(Path(sys.argv[1])).requeue_letters('log', lambda _: True), flush=True)"
)
_DROP = (
    "import sys; from pathlib import Path; from camgraph.pipeline.outbox.outbox_view import OutboxView\n"
    "OutboxView(Path(sys.argv[1])).drop('log', lambda event: int(event.id[1:]) % 2 == 0)"
)


def run_and_kill(code: str, outbox: Outbox, changed: int, now: float) -> None:
    """Start a command, and kill it as soon as the outbox has noticed so many changes."""
    folder = Path(outbox.settings.path).parent
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.DEVNULL)
    before = outbox.left("log")
    until(lambda: process.poll() is not None or abs(outbox.left("log") - before) >= changed)
    process.kill()
    process.wait()
    outbox.maintain(now)


def test_a_requeue_that_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path, sync="none")
    many_letters(tmp_path, 2000)
    got: Counter[str] = Counter()
    for now in range(3):
        run_and_kill(_REQUEUE, outbox, 300, 2.0 * now)
        got.update(own(deliver(outbox, most=150)))
    OutboxView(tmp_path).requeue_letters("log", lambda _: True)
    outbox.maintain(100.0)
    while some := deliver(outbox):
        got.update(own(some))
    assert got == Counter({f"e{n}": 1 for n in range(2000)})
    assert list(DeadLetters(tmp_path, "log")) == []
    outbox.close()


def test_a_drop_that_is_killed_costs_nothing_else(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path, sync="none")
    outbox.accept([make_event(n) for n in range(3000)])
    run_and_kill(_DROP, outbox, 200, 0.0)
    OutboxView(tmp_path).drop("log", lambda event: int(event.id[1:]) % 2 == 0)
    outbox.maintain(5.0)
    got: list[str] = []
    while some := deliver(outbox):
        got += own(some)
    assert got == [f"e{n}" for n in range(1, 3000, 2)]
    outbox.close()


_SERVE = """
import sys, time
from pathlib import Path
from camgraph_test_stages.outboxes import make_event, open_outbox
outbox = open_outbox(Path(sys.argv[1]), sync="none", incarnation=int(sys.argv[2]))
first = int(sys.argv[3])
for n in range(1_000_000):
    outbox.accept([make_event(first + n)])
    outbox.maintain(n / 3)
    rows = outbox.pull("log", 2)
    print(" ".join(event.own_id for _, event in rows), flush=True)
    outbox.acknowledge("log", [row for row, _ in rows])
    outbox.note_delivered()
"""


def test_an_outbox_that_is_killed_between_requeues_loses_nothing(tmp_path: Path) -> None:
    """Its process dies while a command requeues; each event that was committed or requeued is delivered at last."""
    bury(tmp_path, *range(100_000, 100_200))
    got: Counter[str] = Counter()
    for life in (1, 2):
        command = [sys.executable, "-c", _SERVE, str(tmp_path), str(life), str(1000 * life)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            got.update(process.stdout.readline().split())
            OutboxView(tmp_path).requeue_letters("log", lambda letter, life=life: int(letter.id[1:]) % 2 == life % 2)  # type: ignore[misc]
            got.update(process.stdout.readline().split())
            os.kill(process.pid, signal.SIGKILL)
            got.update(process.stdout.read().split())
    last = open_outbox(tmp_path, incarnation=3)
    committed = {row[0].rpartition(" ")[2] for row in last.db.execute("SELECT id FROM events")}
    while some := deliver(last):
        got.update(own(some))
    assert set(got) == committed
    assert {f"e{n}" for n in range(100_000, 100_200)} <= set(got)
    again = [name for name, n in got.items() if n > 1]
    assert len(again) <= 4, "those that were delivered when it died may come twice"
    crash(last)


def test_a_full_disk_is_told_in_one_line(small_disk: Path) -> None:
    outbox = open_outbox(small_disk, sync="none")
    outbox.accept([make_event(1)])
    bury(small_disk, *range(2, 1500))
    room = os.statvfs(small_disk)
    (small_disk / "filler").write_bytes(bytes(room.f_bavail * room.f_frsize - 200_000))
    with pytest.raises(
        EnvironmentProblem, match="dead letters of log cannot be changed: No space left on device: free"
    ):
        OutboxView(small_disk).requeue_letters("log", lambda letter: letter.id == "e7")
    assert own([event.id for _, event in looked(outbox, 0.0).pull("log", 9)]) == ["e1", "e7"]
    assert len(list(DeadLetters(small_disk, "log"))) == 1498, "not one is lost"
    outbox.close()
