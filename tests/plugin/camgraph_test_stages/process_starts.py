"""Which tests start processes: they get the marker `processes`, and no other test may start one.

The rule is simple so that you can foresee it. A test has the marker if its file imports one of `STARTERS`, or if the
test uses one of `FIXTURES`. All tests of a file share its imports, so some are marked that start nothing: move them to
a file of their own, or mark them with `@pytest.mark.in_process`, if they are worth running in `make quick`. A test that
starts a process in another way says so itself, by `@pytest.mark.processes`. `make quick` notices the start of a process
and fails the test if it has no marker.

One process is no test's own: the one that looks at files for all tests of a worker (`stages.video.examiner`). It ends
if nobody asks it for a while, so it is a matter of chance which test starts it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

STARTERS = frozenset(
    {
        "subprocess",
        "multiprocessing",
        "camgraph",
        "camgraph.runs.run",
        "camgraph.runs.watch",
        "camgraph_test_stages.browser",
        "camgraph_test_stages.browser.browsing",
        "camgraph_test_stages.changes.run_with",
        "camgraph_test_stages.services.serving_run",
        "camgraph_test_stages.small_disks",
        "camgraph_test_stages.strangers",
        "camgraph.pipeline.supervision.supervisor.Supervisor",
        "camgraph.pipeline.testing.run_graph",
        "camgraph.tools.lab.broker_servers.serving",
        "camgraph.tools.lab.file_runs.run_way",
        "camgraph.tools.scenes.simulator.rtsp_simulator.RtspSimulator",
    }
)
"""Modules, functions and classes whose users start processes."""
FIXTURES = frozenset(
    {"camgraph", "clip_asset", "cuda", "one_server", "person", "python", "script", "served", "simulator", "small_disk"}
)
"""Fixtures of the files conftest.py that start processes, or hand out a function that does."""
MARKER = "processes"
EXEMPT = "in_process"
SHARED = "camgraph.stages.video.examination"
_EVENTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"})


def mark(items: list[pytest.Item]) -> None:
    """Put the marker on each of `items` that starts processes by the rule above."""
    starting: dict[ModuleType, bool] = {}
    for item in items:
        if isinstance(item, pytest.Function) and not item.get_closest_marker(EXEMPT):
            if item.module not in starting:
                starting[item.module] = any(_name(one) in STARTERS for one in vars(item.module).values())
            if starting[item.module] or not FIXTURES.isdisjoint(item.fixturenames):
                item.add_marker(MARKER)


def is_marked(item: pytest.Item) -> bool:
    return item.get_closest_marker(MARKER) is not None


def _name(value: object) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"


class Watch:
    """Notices the processes that this process starts."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._started: list[str] = []
        sys.addaudithook(self._look)

    def take(self) -> list[str]:
        """The processes that were started since the last call."""
        started, self._started = self._started, []
        return started

    def _look(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in _EVENTS and os.getpid() == self._pid and not _is_shared(arguments):
            self._started.append(f"{event} {arguments[:1]}")


def _is_shared(arguments: tuple[object, ...]) -> bool:
    """`arguments` of the audit event `subprocess.Popen`: the program, and its arguments."""
    return len(arguments) > 1 and isinstance(arguments[1], list) and SHARED in arguments[1]


class Guard:
    """Fails each test that starts a process, in a run from which these were to be left out."""

    def __init__(self) -> None:
        self._watch = Watch()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        self._watch.take()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        yield
        if started := self._watch.take():
            pytest.fail(
                f"mark it with @pytest.mark.{MARKER}, for it starts processes: {', '.join(started)}", pytrace=False
            )
