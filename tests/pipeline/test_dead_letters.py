"""What a sink has given up stays, whole and bounded, even if a process dies or changes the file meanwhile."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from camgraph_test_stages.parts import process_parts, stage_context

from camgraph.pipeline import dead_letters
from camgraph.pipeline.dead_letters import DeadLetters, LetterCount, sinks_with_letters
from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.messages import Event
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.system import disk
from camgraph.pipeline.testing import HandContext, stamp

AT_NS = 1_772_368_205_250_000_000


def event(n: int = 1, body: bytes = b'{"id":"e1", "n": 1.50}') -> Event:
    return Event(stamp(n, "front"), f"before 7 e{n}", f"i{n}", "start", body)


def letters(folder: Path) -> DeadLetters:
    return DeadLetters(folder, "crm", wall_ns=lambda: AT_NS)


def ids(folder: Path) -> list[str]:
    return [letter.id for letter in letters(folder)]


def test_a_line_has_all_that_a_person_asks_for(tmp_path: Path) -> None:
    letters(tmp_path).add(event(), "400: no such door at https://u:secret@crm.example/x", attempts=3)
    path = tmp_path / "dead_letters" / "crm.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    found = json.loads(path.read_text())
    assert "secret" not in found["why"]
    del found["why"]
    assert found == {
        "sink": "crm",
        "id": "e1",
        "at": "2026-03-01T12:30:05.250Z",
        "camera": "front",
        "attempts": 3,
        "incident": "i1",
        "phase": "start",
        "epoch": 0,
        "seq": 1,
        "time_ns": 100_000_000,
        "event": {"id": "e1", "n": 1.5},
    }


@pytest.mark.parametrize("body", [b'{"id":"e1", "n": 1.50}', '{"why":", \\"event\\": {}","ä":"ö"}'.encode()])
def test_the_body_comes_back_byte_for_byte(tmp_path: Path, body: bytes) -> None:
    letters(tmp_path).add(event(1, body), 'it says ", "event": {"', attempts=2)
    [letter] = letters(tmp_path)
    assert (letter.event.body, letter.event.incident, letter.event.phase) == (body, "i1", "start")
    assert (letter.why, letter.at_ns, letter.attempts) == ('it says ", "event": {"', AT_NS, 2)
    assert letter.event.stamp.camera == "front"


def test_a_line_of_another_program_is_read_as_well(tmp_path: Path) -> None:
    path = tmp_path / "dead_letters" / "crm.jsonl"
    path.parent.mkdir()
    letters(tmp_path).add(event(), "why")
    values = json.loads(path.read_text())
    path.write_text(json.dumps(dict(sorted(values.items()))) + "\n")
    assert [letter.event.body for letter in letters(tmp_path)] == [b'{"id":"e1","n":1.5}']


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00", "9999-12-31T23:59:59-14:00", "nan"])
def test_letter_of_another_program_with_odd_time_ends_nothing(tmp_path: Path, at: str) -> None:
    letters(tmp_path).add(event(), "why")
    path = letters(tmp_path).path
    path.write_text(path.read_text() + json.dumps({**json.loads(path.read_text()), "at": at}) + "\n")
    assert ids(tmp_path)[0] == "e1"


def test_a_torn_line_costs_itself_alone(tmp_path: Path) -> None:
    letters(tmp_path).add(event(1), "why")
    path = letters(tmp_path).path
    with path.open("ab") as file:
        file.write(path.read_bytes()[:40])
    letters(tmp_path).add(event(2), "why")
    assert ids(tmp_path) == ["e1", "e2"]


def test_the_newest_letters_stay_if_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "MOST_BYTES", 4096)
    count = LetterCount(letters(tmp_path))
    for n in range(100):
        letters(tmp_path).add(event(n), "why")
        assert count.now() == len(ids(tmp_path))
    found = ids(tmp_path)
    assert found == [f"e{n}" for n in range(100 - len(found), 100)]
    assert [path.stat().st_size <= most for path, most in zip(letters(tmp_path).paths, (2500, 4096), strict=True)]
    assert 4096 - 300 < sum(path.stat().st_size for path in letters(tmp_path).paths) < 6500
    assert sorted(path.name for path in (tmp_path / "dead_letters").iterdir()) == ["crm.jsonl", "crm.jsonl.1"]


def test_letters_that_give_way_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "MOST_BYTES", 4096)
    gone: Counter[str] = Counter()
    kept = DeadLetters(tmp_path, "crm", discarded=lambda camera, n: gone.update({camera: n}))
    for n in range(100):
        kept.add(event(n), "why")
        assert gone["front"] + len(ids(tmp_path)) == n + 1
    assert set(gone) == {"front"}


def test_a_stage_of_a_graph_counts_letters_that_give_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "MOST_BYTES", 1000)
    counters = Counters()
    context = stage_context("crm", "front", tmp_path, process_parts(counters))
    for n in range(20):
        context.dead_letters.add(event(n), "why")
    assert counters.get("letters_discarded", "front") == 20 - len(ids(tmp_path)) > 0


def test_a_full_disk_keeps_nothing_torn(tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk."""
    letters(tmp_path).add(event(1), "why")
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from camgraph.pipeline.dead_letters import DeadLetters; from camgraph.pipeline.messages import Event\n"
        "from camgraph.pipeline.errors import EnvironmentProblem; from camgraph.pipeline.testing import stamp\n"
        "letters = DeadLetters(Path(sys.argv[1]), 'crm')\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "size = letters.path.stat().st_size\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, size + 100))\n"
        "try: letters.add(Event(stamp(2), 'e2', 'i', 'single', b'{}'), 'x' * 500)\n"
        "except EnvironmentProblem as error: print(error)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "free some disk space" in done.stdout
    assert ids(tmp_path) == ["e1"]


def test_a_letter_that_the_disk_does_not_take_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes the write and the disk fails later: the sink must not count its event as done."""
    letters(tmp_path).add(event(1), "why")

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "sync_data", fail)
        with pytest.raises(EnvironmentProblem, match="Input/output error"):
            letters(tmp_path).add(event(2), "why")
    assert ids(tmp_path) == ["e1"]


def test_sinks_and_people_change_the_file_at_the_same_time(tmp_path: Path) -> None:
    def add(start: int) -> None:
        for n in range(start, start + 30):
            letters(tmp_path).add(event(n), "why")

    def remove(_: int) -> None:
        for n in range(0, 90, 3):
            removed.append(letters(tmp_path).remove(lambda letter, name=f"e{n}": letter.id == name))  # type: ignore[misc]

    removed: list[int] = []
    with ThreadPoolExecutor(4) as threads:
        work = [threads.submit(add, start) for start in (0, 30, 60)] + [threads.submit(remove, 0)]
        for one in work:
            one.result(60)
    remove(0)
    assert sorted(ids(tmp_path), key=lambda name: int(name[1:])) == [f"e{n}" for n in range(90) if n % 3]
    assert sum(removed) == 30


def test_the_folder_goes_with_the_last_letter(tmp_path: Path) -> None:
    letters(tmp_path).add(event(1), "why")
    letters(tmp_path).add(event(2), "why")
    assert sinks_with_letters(tmp_path) == ["crm"]
    assert letters(tmp_path).remove(lambda letter: letter.id == "e1") == 1
    assert ids(tmp_path) == ["e2"]
    assert letters(tmp_path).remove(lambda _: True) == 1
    assert sinks_with_letters(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "dead_letters").write_text("a file")
    with pytest.raises(EnvironmentProblem, match=r"crm.jsonl: .*check that this user may write there"):
        letters(tmp_path).add(event(), "why")
    (tmp_path / "dead_letters").unlink()
    (tmp_path / "dead_letters").mkdir()
    (tmp_path / "elsewhere").touch()
    (tmp_path / "dead_letters" / "crm.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentProblem, match="symbolic link"):
        letters(tmp_path).add(event(), "why")


def test_a_stage_that_is_run_by_hand_has_them_too(tmp_path: Path) -> None:
    context = HandContext(tmp_path, tmp_path, stage="crm")
    context.dead_letters.add(event(), "why")
    assert [letter.why for letter in context.dead_letters] == ["why"]
