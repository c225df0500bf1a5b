from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import EnvironmentProblem, UserError
from pipeline.messages import Event
from pipeline.testing import feed, opened, stamp
from stages.sink_jsonl import SinkJsonl


def event(number: int, camera: str = "cam", size: int = 0) -> Event:
    body = json.dumps({"specversion": "1.0", "id": f"e{number}", "data": {"text": "x" * size}}).encode()
    return Event(stamp(number, camera), f"e{number}", f"i{number}", "single", body)


def events(*numbers: int) -> list[Event]:
    return [event(number) for number in numbers]


def ids(file: Path) -> list[str]:
    """The id of each line; fails on a line that is no JSON or has no end."""
    text = file.read_bytes()
    assert text == b"" or text.endswith(b"\n")
    return [json.loads(line)["id"] for line in text.splitlines()]


def write(folder: Path, what: Sequence[Event], *, incarnation: int = 1, batch: int = 3, **more: object) -> dict:
    """Open a sink, feed it, close it; what it counted."""
    with opened(SinkJsonl, {"path": "events.jsonl", **more}, folder=folder, incarnation=incarnation) as sink:
        feed(sink, what, batch=batch)
    return dict(sink.context.counts)


def test_lines_stand_in_the_order_of_the_events_and_are_their_bytes(tmp_path) -> None:
    what = [event(2, "b"), event(0, "a"), event(1, "b")]
    counts = write(tmp_path, what)
    assert (tmp_path / "events.jsonl").read_bytes() == b"".join(e.body + b"\n" for e in what)
    assert counts == {("written", "a"): 1, ("written", "b"): 2}


def test_a_run_appends_to_the_last_one_and_repeats_its_ids(tmp_path) -> None:
    write(tmp_path, events(1, 2))
    write(tmp_path, events(2, 3))
    assert ids(tmp_path / "events.jsonl") == ["e1", "e2", "e2", "e3"]


def test_replace_starts_with_an_empty_file_but_not_after_a_restart(tmp_path) -> None:
    write(tmp_path, events(1, 2))
    write(tmp_path, events(3), mode="replace")
    write(tmp_path, events(3, 4), mode="replace", incarnation=2)
    assert ids(tmp_path / "events.jsonl") == ["e3", "e4"]


def test_what_a_new_outbox_hands_over_again_is_not_written_twice(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("stages.sink_jsonl.KNOWN", 3)
    counts = write(tmp_path, [*events(1, 2, 3), *events(2, 3, 4)], batch=2)
    assert ids(tmp_path / "events.jsonl") == ["e1", "e2", "e3", "e4"]
    assert counts == {("written", "cam"): 4, ("repeated", "cam"): 2}


def test_what_an_earlier_run_has_left_is_another_event_though_it_has_the_same_id_in_it(tmp_path) -> None:
    left = Event(stamp(1), "before 7 e1", body=event(1).body)
    counts = write(tmp_path, [left, event(1), left, event(1)], batch=2)
    assert ids(tmp_path / "events.jsonl") == ["e1", "e1"]
    assert counts[("repeated", "cam")] == 2
    write(tmp_path, [left, event(1)], incarnation=2)
    assert ids(tmp_path / "events.jsonl") == ["e1", "e1"]


def test_a_restart_writes_nothing_twice_and_says_so(tmp_path) -> None:
    write(tmp_path, events(1, 2, 3))
    counts = write(tmp_path, events(2, 3, 4), incarnation=2)
    assert ids(tmp_path / "events.jsonl") == ["e1", "e2", "e3", "e4"]
    assert counts == {("repeated", "cam"): 2, ("written", "cam"): 1}


@settings(max_examples=60)
@given(
    before=st.integers(0, 3),
    count=st.integers(1, 12),
    cut=st.floats(0, 1),
    back=st.integers(0, 12),
    batch=st.integers(1, 5),
)
def test_a_kill_at_any_byte_loses_and_doubles_nothing(before, count, cut, back, batch) -> None:
    """The file as a kill may leave it: cut at any byte after the start of the run; then some events come again."""
    with tempfile.TemporaryDirectory() as name:
        folder, file = Path(name), Path(name) / "events.jsonl"
        write(folder, events(*range(-before, 0)), sync=False)
        start = file.stat().st_size
        write(folder, events(*range(count)), sync=False, batch=batch)
        os.truncate(file, start + round((file.stat().st_size - start) * cut))
        whole = file.read_bytes()[start:].count(b"\n")
        write(folder, events(*range(max(0, whole - back), count)), sync=False, batch=batch, incarnation=2)
        assert ids(file) == [f"e{n}" for n in range(-before, count)]


CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_sink_jsonl import SinkJsonl, event, opened
with opened(SinkJsonl, {"path": "events.jsonl"}, folder=Path(sys.argv[2]), incarnation=int(sys.argv[3])) as sink:
    for n in range(int(sys.argv[4]), 1_000_000, 5):
        sink.process([event(k, size=3000) for k in range(n, n + 5)])
        print(n + 5, flush=True)
"""


def killed_writer(folder: Path, incarnation: int, first: int, batches: int) -> int:
    """Run the sink in a process of its own, kill it in the middle of its work; the number it had acknowledged."""
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parent), str(folder), str(incarnation), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        told = [line for line in (child.stdout.readline() for _ in range(batches + 1)) if line.strip().isdigit()]
        child.kill()
        told += [line for line in child.stdout if line.strip().isdigit()]
    assert child.returncode == -signal.SIGKILL
    return int(told[-1])


def test_a_real_kill_loses_and_doubles_nothing(tmp_path) -> None:
    acknowledged = 0
    for incarnation, batches in enumerate((3, 17, 8), start=1):
        # The outbox does not know of the last two batches, and hands them in again.
        acknowledged = killed_writer(tmp_path, incarnation, max(0, acknowledged - 10), batches)
    write(tmp_path, events(*range(acknowledged, acknowledged + 20)), incarnation=4)
    assert ids(tmp_path / "events.jsonl") == [f"e{n}" for n in range(acknowledged + 20)]


def test_a_torn_line_of_a_killed_run_is_cut_off(tmp_path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(event(1).body + b"\n" + event(2).body[:20])
    write(tmp_path, events(2))
    assert ids(file) == ["e1", "e2"]


def test_a_last_line_that_only_lacks_its_end_is_kept(tmp_path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(event(1).body)
    write(tmp_path, events(2))
    assert ids(file) == ["e1", "e2"]


def test_a_torn_line_of_megabytes_is_found(tmp_path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(event(1).body + b"\n" + event(2, size=3_000_000).body[:-1])
    write(tmp_path, events(3))
    assert ids(file) == ["e1", "e3"]


@pytest.mark.parametrize("text", ["Dear diary", "version: 1\nname: lobby\n", "\n", "Dear diary\n{", "a\n\n"])
@pytest.mark.parametrize("mode", ["append", "replace"])
def test_a_file_of_another_kind_is_left_alone(tmp_path, text, mode) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text(text)
    with pytest.raises(UserError, match="is no file of JSON lines"):
        write(tmp_path, events(1), mode=mode)
    assert file.read_text() == text


def test_two_writers_of_one_file_are_refused(tmp_path) -> None:
    with opened(SinkJsonl, {"path": "events.jsonl"}, folder=tmp_path):
        with pytest.raises(UserError, match="another sink or run is writing to this file"):
            write(tmp_path, events(1))
    write(tmp_path, events(1))


@pytest.mark.parametrize("created", [False, True])
def test_a_file_that_is_moved_away_is_followed_by_a_new_one(tmp_path, created) -> None:
    file = tmp_path / "events.jsonl"
    with opened(SinkJsonl, {"path": "events.jsonl"}, folder=tmp_path) as sink:
        feed(sink, events(1, 2))
        file.rename(tmp_path / "events.jsonl.1")
        if created:
            file.touch()
        feed(sink, events(3, 4))
    assert ids(tmp_path / "events.jsonl.1") == ["e1", "e2"]
    assert ids(file) == ["e3", "e4"]
    write(tmp_path, events(4, 5), incarnation=2)
    assert ids(file) == ["e3", "e4", "e5"]


def test_a_file_that_was_emptied_in_place_grows_again(tmp_path) -> None:
    file = tmp_path / "events.jsonl"
    write(tmp_path, events(0))
    with opened(SinkJsonl, {"path": "events.jsonl"}, folder=tmp_path) as sink:
        feed(sink, events(1, 2))
        os.truncate(file, 0)
        feed(sink, events(3))
    write(tmp_path, events(3, 4), incarnation=2)
    assert ids(file) == ["e3", "e4"]


def test_a_folder_that_went_away_keeps_the_events_until_it_is_back(tmp_path) -> None:
    with opened(SinkJsonl, {"path": "out/events.jsonl"}, folder=tmp_path) as sink:
        (tmp_path / "out").rename(tmp_path / "away")
        with pytest.raises(EnvironmentProblem, match="no such folder"):
            sink.process(events(1))
        (tmp_path / "out").mkdir()
        sink.process(events(1))
    assert ids(tmp_path / "out" / "events.jsonl") == ["e1"]


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no right to mount a small disk: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_tears_no_line_and_loses_nothing(small_disk) -> None:
    file = small_disk / "events.jsonl"
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(40_000))
    with opened(SinkJsonl, {"path": "events.jsonl"}, folder=small_disk) as sink:
        sink.process(events(1, 2))
        big = [event(n, size=9000) for n in range(3, 7)]
        for _ in range(3):
            with pytest.raises(
                EnvironmentProblem, match=r"events.jsonl: cannot write \d+ bytes: No space left on device"
            ):
                sink.process(big)
            assert ids(file) == ["e1", "e2"]
        ballast.unlink()
        sink.process(big)
    assert ids(file) == [f"e{n}" for n in range(1, 7)]


LIMITED = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_sink_jsonl import *
with opened(SinkJsonl, {"path": "events.jsonl"}, folder=Path(sys.argv[2])) as sink:
    sink.process(events(1, 2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 10000))
    with pytest.raises(EnvironmentProblem, match="cannot write .* bytes: File too large"):
        sink.process([event(n, size=900) for n in range(3, 20)])
    assert ids(Path(sys.argv[2]) / "events.jsonl") == ["e1", "e2"]
    resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
    sink.process([event(n) for n in range(3, 20)])
"""


def test_a_limit_on_the_file_size_tears_no_line(tmp_path) -> None:
    command = [sys.executable, "-c", LIMITED, str(Path(__file__).parent), str(tmp_path)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert child.returncode == 0, child.stderr
    assert ids(tmp_path / "events.jsonl") == [f"e{n}" for n in range(1, 20)]


def test_a_full_device_is_reported(tmp_path) -> None:
    with opened(SinkJsonl, {"path": "/dev/full"}, folder=tmp_path) as sink:
        with pytest.raises(EnvironmentProblem, match=r"/dev/full: cannot write \d+ bytes: No space left"):
            sink.process(events(1))


def test_a_relative_folder_is_made(tmp_path) -> None:
    write(tmp_path, events(1), path="a/b/events.jsonl")
    assert ids(tmp_path / "a" / "b" / "events.jsonl") == ["e1"]


@pytest.mark.parametrize(
    ("path", "error", "text"),
    [
        ("{}/gone/events.jsonl", UserError, "gone: no such folder; make it, mount its disk"),
        ("{}", UserError, "is a folder, expected a file; add a file name"),
        ("asset:events.jsonl", UserError, "assets are only read"),
        ("/proc/events.jsonl", (UserError, EnvironmentProblem), "/proc.*(name another path|use another)"),
        ("{}/pipe", UserError, "is no ordinary file; name one, use - for standard output"),
        ("{}/file/events.jsonl", UserError, "no such folder"),
    ],
)
def test_what_cannot_be_written_is_named_at_the_start(tmp_path, path, error, text) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    with pytest.raises(error, match=text):
        write(tmp_path, [], path=path.format(tmp_path))


def test_missing_permission_is_named_at_the_start(tmp_path) -> None:
    """In a process that is not root, who may write everywhere."""
    (tmp_path / "events.jsonl").touch(mode=0o444)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_sink_jsonl import *
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
with pytest.raises(EnvironmentProblem, match="events.jsonl: cannot open it for writing: Permission denied; change its"):
    write(Path({str(tmp_path)!r}), [])
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert child.returncode == 0, child.stderr


OUT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_sink_jsonl import *
import structlog
log = structlog.wrap_logger(structlog.PrintLogger(sys.stderr))
with opened(SinkJsonl, {"path": "-"}, folder=Path(sys.argv[2]), log=log) as sink:
    try:
        for n in range(0, 4000, 10):
            sink.process([event(k, size=100) for k in range(n, n + 10)])
    except EnvironmentProblem as error:
        sys.exit(str(error))
"""


def test_standard_output_carries_nothing_but_events(tmp_path) -> None:
    command = [sys.executable, "-c", OUT, str(Path(__file__).parent), str(tmp_path)]
    child = subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert [json.loads(line)["id"] for line in child.stdout.splitlines()] == [f"e{n}" for n in range(4000)]


def test_a_reader_of_standard_output_that_goes_is_reported(tmp_path) -> None:
    command = [sys.executable, "-c", OUT, str(Path(__file__).parent), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        error = child.stderr.read().decode()
    assert "UserError: standard output: nobody reads it any more" in error
