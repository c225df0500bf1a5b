from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.messages import MOST_REPEATED, Event
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import feed, opened, run_graph, stamp
from camgraph.stages.sinks import sink_jsonl
from camgraph.stages.sinks.sink_jsonl import KNOWN, SinkJsonl
from camgraph.stages.sinks.writing.line_file import LineFile


def event(number: int, camera: str = "cam", size: int = 0) -> Event:
    head = {"specversion": "1.0", "id": f"e{number}", "source": "camgraph/lobby"}
    body = json.dumps({**head, "data": {"text": "x" * size}}).encode()
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


def test_lines_are_event_bytes_in_order(tmp_path) -> None:
    what = [event(2, "b"), event(0, "a"), event(1, "b")]
    counts = write(tmp_path, what)
    assert (tmp_path / "events.jsonl").read_bytes() == b"".join(e.body + b"\n" for e in what)
    assert counts == {("written", "a"): 1, ("written", "b"): 2}


def test_a_run_appends_to_the_last_one_and_repeats_its_ids(tmp_path) -> None:
    write(tmp_path, events(1, 2))
    write(tmp_path, events(2, 3))
    assert ids(tmp_path / "events.jsonl") == ["e1", "e2", "e2", "e3"]


def test_replace_empties_the_file_only_at_first_start(tmp_path) -> None:
    write(tmp_path, events(1, 2))
    write(tmp_path, events(3), mode="replace")
    write(tmp_path, events(3, 4), mode="replace", incarnation=2)
    assert ids(tmp_path / "events.jsonl") == ["e3", "e4"]


def test_what_a_new_outbox_hands_over_again_is_not_written_twice(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("camgraph.stages.sinks.sink_jsonl.KNOWN", 3)
    counts = write(tmp_path, [*events(1, 2, 3), *events(2, 3, 4)], batch=2)
    assert ids(tmp_path / "events.jsonl") == ["e1", "e2", "e3", "e4"]
    assert counts == {("written", "cam"): 4, ("repeated", "cam"): 2}


def test_only_ids_that_may_come_again_are_kept(tmp_path) -> None:
    count = 2 * KNOWN + 5
    what = events(*range(count))
    with opened(SinkJsonl, {"path": "events.jsonl", "sync": False}, folder=tmp_path) as sink:
        feed(sink, what, batch=64)
        assert len(sink._written) == KNOWN
        feed(sink, what[-MOST_REPEATED:], batch=64)
    assert ids(tmp_path / "events.jsonl") == [e.id for e in what]


def test_a_restart_keeps_only_ids_that_may_come_again(tmp_path) -> None:
    count = 2 * KNOWN + 5
    what = events(*range(count))
    write(tmp_path, what, sync=False, batch=64)
    with opened(SinkJsonl, {"path": "events.jsonl", "sync": False}, folder=tmp_path, incarnation=2) as sink:
        assert len(sink._read_back) == KNOWN
        feed(sink, what[-MOST_REPEATED:], batch=64)
        assert sink.context.counts == {("repeated", "cam"): MOST_REPEATED}
    assert ids(tmp_path / "events.jsonl") == [e.id for e in what]


def test_same_id_from_earlier_run_is_another_event(tmp_path) -> None:
    left = Event(stamp(1), "before 7 e1", body=event(1).body)
    counts = write(tmp_path, [left, event(1), left, event(1)], batch=2)
    assert ids(tmp_path / "events.jsonl") == ["e1", "e1"]
    assert counts[("repeated", "cam")] == 2
    write(tmp_path, [left, event(1)], incarnation=2)
    assert ids(tmp_path / "events.jsonl") == ["e1", "e1"]


def test_what_somebody_has_requeued_is_written_again(tmp_path) -> None:
    """Also behind a restart, which knows the lines of this run by the ids in them."""
    write(tmp_path, events(1, 2))
    again = Event(stamp(1), "again 7 e1", body=event(1).body)
    counts = write(tmp_path, [again], incarnation=2)
    assert ids(tmp_path / "events.jsonl") == ["e1", "e2", "e1"]
    assert counts == {("written", "cam"): 1}


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
        output = [line for line in (child.stdout.readline() for _ in range(batches + 1)) if line.strip().isdigit()]
        child.kill()
        output += [line for line in child.stdout if line.strip().isdigit()]
    assert child.returncode == -signal.SIGKILL
    return int(output[-1])


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


@pytest.mark.parametrize("cut", [1, 5, 20, 27, 50, 70])
def test_torn_line_is_removed_even_if_not_resent(tmp_path, cut) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(event(1).body + b"\n" + event(2).body[:cut])
    write(tmp_path, events(3))
    assert ids(file) == ["e1", "e3"]


FOREIGN = b'{"by": "somebody else", "text": "not at its e'


def test_a_torn_line_that_somebody_else_has_begun_is_kept(tmp_path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(event(1).body + b"\n" + FOREIGN)
    write(tmp_path, events(2, 3), batch=1)
    assert file.read_bytes().splitlines() == [event(1).body, FOREIGN, event(2).body, event(3).body]
    write(tmp_path, events(3, 4), incarnation=2)
    assert file.read_bytes().splitlines() == [event(1).body, FOREIGN, *(event(n).body for n in (2, 3, 4))]


def test_torn_line_of_other_event_is_replaced_on_resend(tmp_path) -> None:
    other = [replace(event(n), body=b'{"number": %d, "id": "e%d"}' % (n, n)) for n in range(4)]
    file = tmp_path / "events.jsonl"
    write(tmp_path, other[:2])
    with file.open("ab") as begun:
        begun.write(other[2].body[:8])
    write(tmp_path, other[1:], incarnation=2)
    assert file.read_bytes().splitlines() == [one.body for one in other]


def test_a_torn_line_is_kept_while_the_disk_is_full(small_disk) -> None:
    file, ballast = small_disk / "events.jsonl", small_disk / "ballast"
    file.write_bytes(FOREIGN)
    ballast.write_bytes(bytes(56_000))
    with opened(SinkJsonl, {"path": "events.jsonl"}, folder=small_disk) as sink:
        with pytest.raises(EnvironmentProblem, match="No space left"):
            sink.process([event(1, size=9000)])
        assert file.read_bytes().rstrip(b"\n") == FOREIGN
        ballast.unlink()
        sink.process([event(1, size=9000)])
    assert file.read_bytes().splitlines() == [FOREIGN, event(1, size=9000).body]


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


def test_lines_begin_anew_behind_text_of_others(tmp_path) -> None:
    """Another program appends text without its end while the sink writes: once, and again, and with an end."""
    file = tmp_path / "events.jsonl"

    def add(text: bytes) -> None:
        with file.open("ab") as other:
            other.write(text)

    with structlog.testing.capture_logs() as logs, opened(SinkJsonl, {"path": "events.jsonl"}, folder=tmp_path) as sink:
        feed(sink, events(1))
        add(b"backup begins ... ")
        feed(sink, events(2, 3))
        add(b'{"half": ')
        feed(sink, events(4))
        add(b"ended\n")
        feed(sink, events(5))
    kept = [event(1).body, b"backup begins ... ", event(2).body, event(3).body, b'{"half": ', event(4).body, b"ended"]
    assert file.read_bytes().split(b"\n") == [*kept, event(5).body, b""]
    assert [log["bytes"] for log in logs if log["event"] == "torn_line_of_others_kept"] == [18]
    write(tmp_path, events(5, 6), incarnation=2)
    assert file.read_bytes().split(b"\n") == [*kept, event(5).body, event(6).body, b""]


@pytest.mark.parametrize("text", [b"a note", b"a note\n", b"\n\n"])
def test_events_file_with_notes_of_others_at_its_end_is_taken_up(tmp_path, text) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(event(1).body + b"\n" + text)
    write(tmp_path, events(2))
    assert file.read_bytes().rstrip().splitlines()[-1] == event(2).body
    assert file.read_bytes().startswith(event(1).body + b"\n" + text)


@pytest.mark.parametrize(("size", "left"), [(30, []), (0, [])])
def test_file_that_was_cut_within_a_line_goes_on_with_whole_ones(tmp_path, size: int, left: list[str]) -> None:
    file = tmp_path / "events.jsonl"
    with opened(SinkJsonl, {"path": "events.jsonl"}, folder=tmp_path) as sink:
        feed(sink, events(1, 2))
        os.truncate(file, size)
        feed(sink, events(3, 4))
    assert ids(file) == [*left, "e3", "e4"]


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    other = path.with_name("precious")
    other.write_text("{}\n")
    path.symlink_to(other)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize("what", [_pipe, _link, _socket, Path.mkdir])
def test_events_wait_while_the_path_names_no_regular_file(tmp_path, what) -> None:
    file = tmp_path / "events.jsonl"
    with opened(SinkJsonl, {"path": "events.jsonl"}, folder=tmp_path) as sink:
        feed(sink, events(1, 2))
        file.rename(tmp_path / "events.jsonl.1")
        what(file)
        for _ in range(2):
            with pytest.raises(EnvironmentProblem, match=r"events.jsonl.*(put a file or nothing there|is a folder)"):
                sink.process(events(3))
        file.rmdir() if file.is_dir() else file.unlink()
        sink.process(events(3))
    assert ids(tmp_path / "events.jsonl.1") == ["e1", "e2"]
    assert ids(file) == ["e3"]
    assert not (tmp_path / "precious").exists() or (tmp_path / "precious").read_text() == "{}\n"


@pytest.mark.parametrize("what", [_pipe, _link, Path.mkdir])
def test_a_process_that_is_started_again_waits_too(tmp_path, what) -> None:
    file = tmp_path / "events.jsonl"
    write(tmp_path, events(1, 2))
    file.rename(tmp_path / "aside")
    what(file)
    with opened(SinkJsonl, {"path": "events.jsonl"}, folder=tmp_path, incarnation=2) as sink:
        with pytest.raises(EnvironmentProblem, match=r"events\.jsonl"):
            sink.process(events(2, 3))
        file.rmdir() if file.is_dir() else file.unlink()
        (tmp_path / "aside").rename(file)
        sink.process(events(2, 3))
    assert ids(file) == ["e1", "e2", "e3"]


@pytest.mark.parametrize("step", ["read_start", "tail", "remember_start"])
def test_restart_waits_for_refused_descriptors(tmp_path, monkeypatch, step) -> None:
    write(tmp_path, events(1, 2))
    if step == "remember_start":
        (tmp_path / "start.json").unlink()

    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        target = {"read_start": (Path, "read_text"), "tail": (LineFile, "tail")}
        owner, name = target.get(step, (sink_jsonl, "write_whole"))
        patch.setattr(owner, name, refuse)
        with opened(SinkJsonl, {"path": "events.jsonl"}, folder=tmp_path, incarnation=2) as sink:
            with pytest.raises(EnvironmentProblem, match="Too many open files"):
                sink.process(events(3))
            patch.undo()
            sink.process(events(3))
    assert ids(tmp_path / "events.jsonl") == ["e1", "e2", "e3"]


def test_only_links_present_at_start_are_followed(tmp_path) -> None:
    file, target, other = (tmp_path / name for name in ("events.jsonl", "target", "other"))
    file.symlink_to("target")
    lines: list[tuple[str, dict[str, object]]] = []
    log = structlog.wrap_logger(None, processors=[lambda _, __, event: _noted(lines, event)])
    with opened(SinkJsonl, {"path": "events.jsonl"}, folder=tmp_path, log=log) as sink:
        feed(sink, events(1))
        file.unlink()
        file.symlink_to("other")
        with pytest.raises(EnvironmentProblem, match="is a symbolic link, expected a regular file"):
            sink.process(events(2))
        file.unlink()
        file.symlink_to("target")
        sink.process(events(2))
    assert [values["link_to"] for name, values in lines if name == "events_file"] == ["target"]
    assert ids(target) == ["e1", "e2"]
    assert not other.exists()
    write(tmp_path, events(2, 3), incarnation=2)
    assert ids(target) == ["e1", "e2", "e3"]


GRAPH = """
version: 1
name: pipe{pid}
cameras: {{a: {{frames: 400, pace_ms: 5}}}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src}}
  log: {{use: sink_jsonl, from: emit, with: {{path: events.jsonl}}}}
"""


class Swap:
    """Puts a pipe in the place of the file once there are lines in it, and takes it away when the sink waits."""

    def __init__(self, file: Path) -> None:
        self.file, self.waited = file, False

    def __call__(self, run: Supervisor) -> None:
        if not self.file.exists() and not self.waited:
            return
        if self.file.is_fifo() and any("is a pipe" in stage.blocked_on for stage in run.status().stages.values()):
            self.waited = True
            self.file.unlink()
        elif self.file.is_file() and not self.waited and self.file.stat().st_size > 1000:
            self.file.rename(self.file.with_name("before"))
            os.mkfifo(self.file)


def test_a_run_whose_file_becomes_a_pipe_waits_and_loses_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    graph = tmp_path / "graph.yaml"
    graph.write_text(GRAPH.format(pid=os.getpid()))
    swap = Swap(tmp_path / "events.jsonl")
    outcome, _ = run_graph(load_plan(graph), swap)
    assert swap.waited
    assert (outcome.status, outcome.problems) == (0, [])
    lines = [line for name in ("before", "events.jsonl") for line in (tmp_path / name).read_text().splitlines()]
    assert [json.loads(line)["seq"] for line in lines] == list(range(400))


def _noted(lines: list, event: dict) -> str:
    lines.append((event.pop("event"), event))
    raise structlog.DropEvent


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


def test_missing_permission_is_named_at_the_start() -> None:
    """In a process without root's rights, because root may write everywhere.

    Not in `tmp_path`: each pytest that starts takes the rights of others from the folder above.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "events.jsonl").touch(mode=0o444)
        code = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_sink_jsonl import *
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
with pytest.raises(EnvironmentProblem, match="events.jsonl: cannot open it for writing: Permission denied; change its"):
    write(Path({folder!r}), [])
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
    assert "UserError: standard output: its reader has closed it" in error
