"""Shared by all tests: the folder of data that is not in the repository, and clean surroundings for each test."""

from __future__ import annotations

import compileall
import faulthandler
import gc
import itertools
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import structlog
from camgraph_test_stages import process_starts, small_disks, strangers, warm_starts
from hypothesis import settings

from camgraph.pipeline.system import redaction

# No deadline: on a loaded machine, the time of an example proves nothing.
settings.register_profile("camgraph", deadline=None)
settings.load_profile("camgraph")

# In the background of a script, or under nohup, these signals are ignored, and child processes would inherit that.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)

FEW_EXAMPLES = 15
BROWSER = "page"
"""The fixture that is one."""
ROOT = Path(__file__).resolve().parent.parent
_GRACE_S = 120
"""Beyond its timeout, for a test to end by itself."""
_real_stderr = [2]
"""Its descriptor: what tests write to 2 is captured."""
_UIDS = itertools.count(100_000 + os.getpid() % 10_000 * 100)
"""Users that no machine has, others in each process that tests."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Where slow tests are left out, properties are tried with a few examples: `make test` tries all."""
    test = getattr(item, "obj", None)
    asked = getattr(test, "_hypothesis_internal_use_settings", None)
    if asked is not None and "not slow" in item.config.option.markexpr:
        few = settings(asked, max_examples=min(asked.max_examples, FEW_EXAMPLES))
        test._hypothesis_internal_use_settings = few


def pytest_configure(config: pytest.Config) -> None:
    """Compile our packages, and keep what becomes of the tests, for all processes that use them.

    Without that, if PYTHONDONTWRITEBYTECODE is set, it is a fifth of the start of each of thousands of processes.
    """
    if not hasattr(config, "workerinput"):
        for folder in ("src/camgraph", "pipeline", "stages", "tools", "tests/plugin"):
            compileall.compile_dir(ROOT / folder, quiet=2)
    sys.dont_write_bytecode = False
    _real_stderr[0] = os.dup(2)
    if f"not {process_starts.MARKER}" in config.option.markexpr:
        config.pluginmanager.register(process_starts.Guard())
    warm_starts.install()


def pytest_sessionfinish() -> None:
    faulthandler.cancel_dump_traceback_later()


def pytest_unconfigure() -> None:
    for template in (warm_starts.TEMPLATE, *warm_starts.OTHERS.values()):
        template.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with a browser come first: pytest-xdist gives the first tests to one worker, and moves only the last ones.

    Divided among several workers, each would have a browser and a run of cameras of its own, all at the same time.
    """
    process_starts.mark(items)
    items.sort(key=lambda item: BROWSER not in getattr(item, "fixturenames", ()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A process that a test has stopped for good shows where its threads are, and ends.

    Its timeout ends no native code that does not return, and nothing at all between two tests. pytest-xdist names the
    test, and another process goes on with those that are left.
    """
    marker = item.get_closest_marker("timeout")
    limit_s = marker.args[0] if marker else float(item.config.getini("timeout"))
    faulthandler.dump_traceback_later(limit_s + _GRACE_S, exit=True, file=_real_stderr[0])
    with warm_starts.cold() if item.get_closest_marker(warm_starts.MARKER) else nullcontext():
        return (yield)


def pytest_collection_finish(session: pytest.Session) -> None:
    """The tests stay: `gc.collect()` in one of them looks at what came since.

    Of modules that a test writes and changes within a second, Python must keep nothing.
    """
    if not session.config.option.collectonly and any(map(process_starts.is_marked, session.items)):
        warm_starts.TEMPLATE.begin(os.environ)
    gc.freeze()
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))


@pytest.fixture(scope="session", autouse=True)
def own_runs() -> Iterator[None]:
    """You may have runs of your own on this machine: `camgraph stop` without a name must not meet a test's."""
    short = "/tmp"
    with tempfile.TemporaryDirectory(prefix="cgr", dir=short) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CAMGRAPH_RUN_DIR", f"{folder}/runs")
        yield


@pytest.fixture(autouse=True)
def usual_texts() -> Iterator[None]:
    """Commands that run in the tests' own process set up logs and hide secrets: tests that come later would see a part
    of the logs, and messages without words that were somebody's secret before.
    """
    known, any_known = set(redaction._known), redaction._any_known
    yield
    structlog.reset_defaults()
    redaction._known, redaction._any_known = known, any_known


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real models, clips and pictures; the test is skipped where it is absent."""
    folder = Path(os.environ.get("CAMGRAPH_TEST_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no test data: {folder} is no folder (set CAMGRAPH_TEST_DATA)")
    return folder


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """This process has more than 1,100 open descriptors; `select` takes none beyond 1023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip(f"at most {hard} descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    yield
    for one in opened:
        os.close(one)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def nobody() -> Iterator[None]:
    """Root may read everything: for the test, be somebody who may not."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(65534)
    yield
    os.seteuid(mine)


@pytest.fixture(scope="session")
def _other_users() -> None:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root can be another user")
    if not strangers.interpreter():
        pytest.skip("no Python of this version that another user can start")


@pytest.fixture
def person(_other_users: None) -> Iterator[Callable[[], strangers.Person]]:
    """Makes further users of this machine, with a folder each; skipped where this cannot be another user."""
    with tempfile.TemporaryDirectory(prefix="cgu", dir="/tmp", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        made: list[int] = []

        def make() -> strangers.Person:
            made.append(next(_UIDS))
            return strangers.Person(made[-1], Path(folder) / str(made[-1]))

        yield make
        for path in (path for uid in made for path in Path("/tmp").glob(f"camgraph-{uid}*")):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


@pytest.fixture
def disk_without_links(tmp_path: Path) -> Iterator[Path]:
    """A file system without hard links; skipped where none can be mounted."""
    with small_disks.disk_without_links(tmp_path) as disk:
        yield disk
