"""What is short is said in words with a way out, and what is something else is not taken for it."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import zmq

from camgraph.pipeline.errors import Shortage
from camgraph.pipeline.shm.segments import create_locked, segments_bytes
from camgraph.pipeline.supervision.deaths import hint_at
from camgraph.pipeline.system.scarcity import after, in_words, shortage_of

PREFIX = f"camgraph-{os.getuid()}-test{os.getpid()}-scarcity.1"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.EMFILE, ""), "Too many open files: raise the limit (ulimit -n"),
        (zmq.ZMQError(errno.EMFILE), "Too many open files: raise the limit (ulimit -n"),
        (BlockingIOError(errno.EAGAIN, "fork"), "raise the limit (ulimit -u for processes)"),
        (MemoryError(), "Cannot allocate memory: free some memory"),
    ],
)
def test_what_is_short_is_said_with_a_way_out(error: Exception, message: str) -> None:
    assert message in (in_words(error) or "")


def test_other_errors_are_not_taken_for_a_shortage() -> None:
    assert in_words(FileNotFoundError(errno.ENOENT, "")) is None
    assert in_words(ValueError("no")) is None
    assert shortage_of(PermissionError(errno.EACCES, "")) is None


def test_unobservable_shortage_ends_after_a_while() -> None:
    assert not after(60)()
    assert after(0)()


def test_lasting_memory_shortage_leaves_no_file() -> None:
    with pytest.raises(Shortage, match=r"no room for .* MB in /dev/shm .*make it larger") as raised:
        create_locked(PREFIX, 1 << 50)
    assert not raised.value.is_over()
    assert not list(Path("/dev/shm").glob(f"{PREFIX}*"))


def test_lack_of_descriptors_is_a_shortage() -> None:
    _, hard = before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        with pytest.raises(Shortage, match="Too many open files: raise the limit"):
            create_locked(PREFIX, 4096)
        assert segments_bytes(PREFIX) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert not list(Path("/dev/shm").glob(f"{PREFIX}*"))


def test_only_a_death_that_nobody_here_wanted_has_a_hint() -> None:
    assert "memory is short" in hint_at(-9, "")
    assert hint_at(-9, "no sign of life for 10 s (hang_s)") == ""
    assert hint_at(-11, "") == ""


def test_too_little_address_space_is_one_line(tmp_path: Path) -> None:
    limited = (
        "import resource as r; r.setrlimit(r.RLIMIT_AS, (600 << 20,) * 2); from camgraph.tools.cli import main; main()"
    )
    command = [sys.executable, "-c", limited, "run", str(tmp_path / "graph.yaml")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 3
    assert len(ran.stderr.splitlines()) == 1
    assert "ulimit -v unlimited" in ran.stderr
