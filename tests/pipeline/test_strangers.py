"""Another user of the machine, who may write where everybody may, cannot harm a run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from camgraph_test_stages.programs import next_line
from camgraph_test_stages.strangers import Person
from camgraph_test_stages.waiting import until

from camgraph.pipeline.testing import hit

SHARED = Path("/dev/shm")
GRAPH = """
version: 1
name: lobby
cameras: {a: {frames: 1000000, pace_ms: 20, bytes: 30000}}
stages:
  src: {use: count_source}
  left: {use: double, from: src}
  out: {use: collect, from: left, with: {path: numbers}}
"""
PLANTS = """
import os, re, sys, time
planted = set()
while os.getppid() == int(sys.argv[2]):
    for name in os.listdir("/dev/shm"):
        if not name.startswith(f"camgraph-{sys.argv[1]}-") or name in planted:
            continue
        process, incarnation = re.match(r"(.*)[.]([0-9]+)[.][^.]*$", name).groups()
        for life in range(int(incarnation), int(incarnation) + 4):
            for number in range(4):
                new = f"{process}.{life}.{number}"
                if new not in planted:
                    try:
                        os.close(os.open("/dev/shm/" + new, os.O_CREAT | os.O_EXCL, 0o666))
                    except FileExistsError:
                        continue
                    os.chmod("/dev/shm/" + new, 0o666)
                    planted.add(new)
                    print(new)
    time.sleep(0.001)
"""


@contextmanager
def running(owner: Person, text: str = GRAPH, **environ: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A run of this user, and the file with its log; killed at the end where it has not ended by then."""
    graph = owner.write("graph.yaml", text)
    log = owner.write("log", "")
    words = ("-m", "camgraph.tools.cli", "run", graph, "--json-logs")
    with log.open("a") as stderr:
        process = owner.start(*words, stderr=stderr, **{"HOME": str(owner.folder), **environ})
    try:
        yield process, log
    finally:
        process.kill()
        process.communicate()


def wait(condition: Callable[[], object], process: subprocess.Popen[str], log: Path) -> None:
    """Wait until the condition is true; fails with the log if the process ends before."""

    def is_so() -> object:
        assert process.poll() is None, log.read_text()
        return condition()

    until(is_so, why=log.read_text, every_s=0.05)


def grows(path: Path, process: subprocess.Popen[str], log: Path) -> None:
    """Wait until something is added to a file."""
    size = path.stat().st_size
    wait(lambda: path.stat().st_size > size + 100, process, log)


def child(process: subprocess.Popen[str], plan: str) -> int:
    """The id of the process of this process, 0 while there is none."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_text().split("\0")
            parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == process.pid and f"lobby/{plan}" in words:
            return int(path.name)
    return 0


def test_names_that_somebody_takes_in_advance_cost_a_run_nothing(person: Callable[[], Person]) -> None:
    """The stranger sees which files a run has in /dev/shm, and creates the next ones by their numbers in advance."""
    owner, stranger = person(), person()
    planting = stranger.start("-c", PLANTS, owner.uid, os.getpid())
    try:
        with running(owner) as (run, log):
            numbers = owner.folder / "numbers"
            wait(lambda: numbers.exists() and numbers.stat().st_size > 100, run, log)
            for _ in range(2):
                wait(lambda: list(SHARED.glob(f"camgraph-{owner.uid}-lobby-*-src.a.*.[0-9]")), run, log)
                hit(child(run, "src.a"))
                grows(numbers, run, log)
            run.send_signal(signal.SIGTERM)
            assert run.wait(60) == 0, log.read_text()
            output = [line for line in log.read_text().splitlines() if "foreign_files_left_alone" in line]
            assert [json.loads(line)["owner"] for line in output] == [stranger.uid]
    finally:
        planting.kill()
        planted = planting.communicate()[0].split()
        left = [path for path in SHARED.glob(f"camgraph-{owner.uid}-*") if path.stat().st_uid == owner.uid]
        for path in SHARED.glob(f"camgraph-{owner.uid}-*"):
            path.unlink()
    assert len(planted) > 8
    assert left == []


# ---- the folder of runs, and the outbox

EVENTS = """
version: 1
name: {name}
cameras: {{a: {{frames: 1000000, pace_ms: 50}}}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src}}
  log: {{use: sink_jsonl, from: emit, with: {{path: events.jsonl}}}}
"""


def has_events(owner: Person) -> Callable[[], bool]:
    file = owner.folder / "events.jsonl"
    return lambda: file.exists() and file.stat().st_size > 100


def login(user: Person, name: str) -> dict[str, str]:
    """The environment of one login of this user."""
    folder = user.folder / name
    folder.mkdir(exist_ok=True)
    folder.chmod(0o700)
    os.chown(folder, user.uid, user.uid)
    return {"XDG_RUNTIME_DIR": str(folder)}


TAKES = """
import os, sys
kind, path = sys.argv[1:]
{"folder": os.mkdir, "link": lambda path: os.symlink(os.getcwd(), path), "file": lambda path: open(path, "w").close()}[
    kind
](path)
"""


@pytest.mark.parametrize("kind", ["folder", "link", "file"])
def test_taken_run_folder_is_replaced(person: Callable[[], Person], kind: str) -> None:
    owner, stranger = person(), person()
    usual = Path("/tmp") / f"camgraph-{owner.uid}"
    assert stranger.run("-c", TAKES, kind, usual).returncode == 0
    name = f"n{owner.uid}"
    with running(owner, EVENTS.format(name=name)) as (run, log):
        wait(has_events(owner), run, log)
        [output] = [json.loads(line) for line in log.read_text().splitlines() if "run_folder_taken" in line]
        assert (output["folder"], output["owner"]) == (str(usual), stranger.uid)
        assert output["instead"].startswith(f"{usual}-")
        assert Path(output["instead"]).stat().st_mode & 0o777 == 0o700
        asked = owner.camgraph("status", "--json")
        assert asked.returncode == 0, asked.stderr
        assert json.loads(asked.stdout)["graph"] == name
        done = owner.camgraph("stop")
        assert done.returncode == 0, done.stderr
        assert run.wait(60) == 0, log.read_text()
    assert list(Path(output["instead"]).iterdir()) == []


def test_run_is_found_from_another_login(person: Callable[[], Person]) -> None:
    owner = person()
    here, there = login(owner, "h"), login(owner, "t")
    name = f"n{owner.uid}"
    with running(owner, EVENTS.format(name=name), **here) as (run, log):
        wait(has_events(owner), run, log)
        second = owner.camgraph("run", "graph.yaml", "--quiet", **there)
        assert second.returncode == 2
        assert f"a run called {name} is going on, started elsewhere ({owner.folder}/h/camgraph/{name})" in second.stderr
        assert run.poll() is None
        assert json.loads(owner.camgraph("status", "--json", **there).stdout)["graph"] == name
        done = owner.camgraph("stop", **there)
        assert (done.returncode, done.stdout) == (0, f"{name} is stopping\n")
        assert run.wait(60) == 0, log.read_text()


def test_no_second_run_uses_an_outbox_wherever_it_is_started(person: Callable[[], Person]) -> None:
    """Each looks for runs only in its own folder, so that neither sees the other."""
    owner = person()
    folders = [{"CAMGRAPH_RUN_DIR": str(owner.folder / name)} for name in ("h", "t")]
    name = f"n{owner.uid}"
    with running(owner, EVENTS.format(name=name), **folders[0]) as (run, log):
        wait(has_events(owner), run, log)
        second = owner.camgraph("run", "graph.yaml", "--quiet", **folders[1])
        assert second.returncode == 2
        outbox = owner.folder / ".local/state/camgraph" / name
        assert f"the outbox in {outbox} is in use by another run ({name}, process {run.pid})" in second.stderr
        assert "nothing is running" in owner.camgraph("status", **folders[1]).stderr
        other = owner.camgraph("check", "graph.yaml", **folders[1])
        assert other.returncode == 0, other.stderr
        size = (owner.folder / "events.jsonl").stat().st_size
        wait(lambda: (owner.folder / "events.jsonl").stat().st_size > size, run, log)
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 0, log.read_text()
    assert not (outbox / "lock").exists()


def test_only_root_may_ask_run_of_another_user(person: Callable[[], Person]) -> None:
    owner, stranger = person(), person()
    name = f"n{owner.uid}"
    with running(owner, EVENTS.format(name=name), **login(owner, "h")) as (run, log):
        wait(has_events(owner), run, log)
        for words in (["status"], ["status", "--name", name], ["stop", "--name", name]):
            done = stranger.camgraph(*words)
            assert done.returncode == 2
            assert re.search(rf"running as another user: .*\b{name} of user {owner.uid}", done.stderr), done.stderr
            refused = stranger.camgraph(*words, "--user", owner.uid)
            assert refused.returncode == 2
            assert "only root may ask the runs of other users" in refused.stderr
        assert as_root("status", "--name", name).returncode == 2
        asked = as_root("status", "--json", "--name", name, "--user", owner.uid)
        assert json.loads(asked.stdout)["graph"] == name, asked.stderr
        stopped = as_root("stop", "--name", name, "--user", owner.uid)
        assert stopped.stdout == f"{name} of user {owner.uid} is stopping\n", stopped.stderr
        assert run.wait(60) == 0, log.read_text()


def as_root(*words: object) -> subprocess.CompletedProcess[str]:
    """A command of camgraph that root types, wherever the runs are."""
    environ = {**os.environ, "CAMGRAPH_RUN_DIR": "", "HOME": "/root", "COLUMNS": "300"}
    command = [sys.executable, "-m", "camgraph.tools.cli", *map(str, words)]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=120)


POSES = """
import os, socket, sys
from camgraph.pipeline.system.side_link import framed
folder = os.path.join(os.getcwd(), "camgraph", sys.argv[1])
os.makedirs(folder, mode=0o700)
server = socket.socket(socket.AF_UNIX)
server.bind(f"{folder}/camgraph.control")
server.listen()
print("listens", flush=True)
while True:
    client, _ = server.accept()
    if client.recv(1 << 16):
        print("asked", flush=True)
        client.sendall(framed(sys.argv[2]))
    client.close()
"""
HEALTHY = {"graph": "lobby", "health": {"level": "healthy", "reason": "all is well"}}


def test_a_stranger_does_not_pose_as_the_run_that_root_asks_for(person: Callable[[], Person]) -> None:
    """A monitor of root asks for a run by its name: anybody may give a run that name."""
    stranger = person()
    name = f"n{stranger.uid}"
    posing = stranger.start("-c", POSES, name, json.dumps(HEALTHY))
    try:
        assert next_line(posing) == "listens\n"
        checked = as_root("status", "--check", "--name", name)
        assert (checked.returncode, checked.stdout.partition(":")[0]) == (3, "unknown"), checked.stdout
        assert f"{name} of user {stranger.uid}" in checked.stdout
        for words in (["status"], ["stop"]):
            refused = as_root(*words, "--name", name)
            assert refused.returncode == 2
            assert f"{name} of user {stranger.uid}" in refused.stderr
            assert "; ask as that user, or as root with --user" in refused.stderr
        told = as_root("status", "--check", "--name", name, "--user", stranger.uid)
        assert told.stdout == f"healthy: {name} of user {stranger.uid}: all is well\n"
    finally:
        posing.kill()
        assert posing.communicate()[0] == "asked\n", "it was asked without --user"


def test_a_stranger_does_not_take_the_name_of_a_run_of_root(person: Callable[[], Person]) -> None:
    owner, stranger = person(), person()
    name = f"n{owner.uid}"
    posing = stranger.start("-c", POSES, name, json.dumps(HEALTHY))
    try:
        assert next_line(posing) == "listens\n"
        with running(owner, EVENTS.format(name=name), **login(owner, "h")) as (run, log):
            wait(has_events(owner), run, log)
            told = as_root("status", "--check", "--name", name, "--user", owner.uid)
            assert f"{name} of user {owner.uid}" in told.stdout
            assert "all is well" not in told.stdout
    finally:
        posing.kill()
        assert posing.communicate()[0] == ""


@pytest.mark.parametrize("lie", ["[]", '{"cameras": 7}', '{"health": {"level": []}}', '{"uptime_s": 1e999}', "\x1b"])
def test_lies_of_a_run_of_another_user_are_told_in_words(person: Callable[[], Person], lie: str) -> None:
    stranger = person()
    name = f"n{stranger.uid}"
    posing = stranger.start("-c", POSES, name, lie)
    try:
        assert next_line(posing) == "listens\n"
        told = as_root("status", "--name", name, "--user", stranger.uid)
        assert told.returncode in (2, 3)
        assert "cannot be read" in told.stderr
        assert "Traceback" not in told.stderr
    finally:
        posing.kill()
        posing.communicate()


@pytest.mark.parametrize("by_link", [False, True])
def test_a_false_run_of_another_user_is_not_asked(person: Callable[[], Person], by_link: bool) -> None:
    """He has a socket of the right name in a folder that everybody may enter, or lets its name lead to files of yours.

    Such a link could lead elsewhere a moment later.
    """
    owner, stranger = person(), person()
    stranger.folder.chmod(0o755)
    name = f"n{owner.uid}"
    (stranger.folder / name).mkdir(mode=0o777)
    (stranger.folder / name).chmod(0o777)
    os.chown(stranger.folder / name, stranger.uid, stranger.uid)
    listens = (
        "import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o777);"
        "s.listen(); print('listens', flush=True); s.settimeout(60); s.accept(); print('asked', flush=True)"
    )
    pretending = stranger.start("-c", listens, stranger.folder / name / "camgraph.control")
    try:
        assert next_line(pretending) == "listens\n"
        if by_link:
            (stranger.folder / name).rename(stranger.folder / "aside")
            (stranger.folder / name).symlink_to(owner.folder)
            os.chown(stranger.folder / name, stranger.uid, stranger.uid, follow_symlinks=False)
            owner.write("camgraph.control", "")
        for words in (["status", "--name", name], ["cameras", "add", "c", "rtsp://u:secret@h/x", "--name", name]):
            done = owner.camgraph(*words)
            assert done.returncode == 2
            assert f"{name} of user {stranger.uid}" in done.stderr
    finally:
        pretending.kill()
        assert "asked" not in pretending.communicate()[0]


def _foreign(folder: Path, stranger: Person) -> str:
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    os.chown(folder, stranger.uid, stranger.uid)
    return f"the state folder {folder} belongs to user {stranger.uid}"


def _read_only(folder: Path, stranger: Person) -> str:
    folder.mkdir(parents=True)
    folder.chmod(0o555)
    return f"the state folder {folder} cannot be written"


def _foreign_parent(folder: Path, stranger: Person) -> str:
    folder.parent.mkdir(parents=True)
    os.chown(folder.parent, stranger.uid, stranger.uid)
    folder.parent.chmod(0o755)
    return f"the state folder {folder.parent} belongs to user {stranger.uid}"


def _foreign_file(folder: Path, stranger: Person) -> str:
    folder.mkdir(parents=True)
    (folder / "outbox.sqlite").touch(mode=0o644)
    os.chown(folder / "outbox.sqlite", stranger.uid, stranger.uid)
    folder.chmod(0o777)
    return f"the outbox {folder}/outbox.sqlite cannot be written (it belongs to user {stranger.uid})"


def _link(folder: Path, stranger: Person) -> str:
    folder.mkdir(parents=True)
    (folder / "outbox.sqlite").symlink_to("/etc/hostname")
    folder.chmod(0o777)
    return f"{folder}/outbox.sqlite is a symbolic link"


@pytest.mark.parametrize("make", [_foreign, _read_only, _foreign_parent, _foreign_file, _link])
def test_unusable_state_folder_is_reported(person: Callable[[], Person], make: Callable[[Path, Person], str]) -> None:
    owner, stranger = person(), person()
    name = f"n{owner.uid}"
    reported = make(Path(owner.folder).parent / "state" / name, stranger)
    owner.write("graph.yaml", EVENTS.format(name=name))
    state = {"CAMGRAPH_STATE_DIR": str(Path(owner.folder).parent / "state")}
    done = owner.camgraph("run", "graph.yaml", "--quiet", **state, **login(owner, "h"))
    assert done.returncode == 3, done.stderr
    assert reported in done.stderr
    assert "set CAMGRAPH_STATE_DIR to another folder" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (owner.folder / "events.jsonl").exists()
    before = sorted(owner.folder.parent.rglob("*"))
    checked = owner.camgraph("check", "graph.yaml", **state)
    assert checked.returncode == 3
    assert f"graph.yaml:8:3: {reported}" in checked.stderr
    assert sorted(owner.folder.parent.rglob("*")) == before


def test_a_user_without_a_home_is_told_what_to_set(person: Callable[[], Person]) -> None:
    owner = person()
    owner.write("graph.yaml", EVENTS.format(name=f"n{owner.uid}"))
    done = owner.run(
        "-c",
        "import os; del os.environ['HOME']; from camgraph.tools.cli import main; main()",
        "check",
        "graph.yaml",
        HOME="/",
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "this user has no home folder: set HOME, or CAMGRAPH_CACHE_DIR and CAMGRAPH_STATE_DIR" in done.stderr


def test_a_folder_of_root_among_ones_runs_costs_nothing(person: Callable[[], Person]) -> None:
    """`sudo` leaves such a folder if it keeps the environment."""
    owner = person()
    here = login(owner, "h")
    runs = owner.folder / "h" / "camgraph"
    (runs / "roots").mkdir(parents=True)
    (runs / "roots" / "lock").touch(mode=0o600)
    os.chown(runs, owner.uid, owner.uid)
    runs.chmod(0o700)
    (runs / "roots").chmod(0o700)
    with running(owner, EVENTS.format(name=f"n{owner.uid}"), **here) as (run, log):
        wait(has_events(owner), run, log)
        assert owner.camgraph("status", **here).returncode == 0
        assert owner.camgraph("stop", **here).returncode == 0
        assert run.wait(60) == 0, log.read_text()
        assert "run_folder_not_swept" in log.read_text()


def _unwritable(folder: Path) -> str:
    folder.chmod(0o555)
    return f"{folder}: this user cannot write in this folder"


def _missing(folder: Path) -> str:
    folder.rmdir()
    return f"{folder}: no such folder; make it, mount its disk, or name another path"


def _read_only_file(folder: Path) -> str:
    (folder / "events.jsonl").touch(mode=0o444)
    return f"{folder}/events.jsonl: this user cannot write it"


def _pipe(folder: Path) -> str:
    os.mkfifo(folder / "events.jsonl")
    return f"{folder}/events.jsonl: is a pipe, expected a file"


@pytest.mark.parametrize("make", [_unwritable, _missing, _read_only_file, _pipe])
def test_check_tries_output_folder_leaving_nothing(person: Callable[[], Person], make: Callable[[Path], str]) -> None:
    owner = person()
    out = owner.folder.parent / "out"
    out.mkdir(mode=0o777)
    out.chmod(0o777)
    reported = make(out)
    graph = EVENTS.format(name="n").replace("path: events.jsonl", f"path: {out}/events.jsonl")
    owner.write("graph.yaml", graph)
    before = sorted(owner.folder.parent.rglob("*"))
    done = owner.camgraph("check", "graph.yaml")
    assert done.returncode == 2, done.stderr
    column = 1 + next(line for line in graph.splitlines() if "log:" in line).index(str(out))
    assert f"graph.yaml:8:{column}: stages.log.with.path: {reported}" in done.stderr
    assert sorted(owner.folder.parent.rglob("*")) == before
    ran = owner.camgraph("run", "graph.yaml", "--quiet", **login(owner, "h"))
    assert (ran.returncode, reported in ran.stderr) == (2, True)


def test_check_makes_no_folder_for_outputs_beside_the_graph(person: Callable[[], Person]) -> None:
    owner = person()
    owner.write("graph.yaml", EVENTS.format(name="n").replace("path: events.jsonl", "path: a/b/events.jsonl"))
    done = owner.camgraph("check", "graph.yaml")
    assert done.returncode == 0, done.stderr
    owner.folder.chmod(0o555)
    done = owner.camgraph("check", "graph.yaml")
    assert done.returncode == 2
    assert f"stages.log.with.path: {owner.folder}: this user cannot write in this folder" in done.stderr
    assert [path.name for path in owner.folder.iterdir()] == ["graph.yaml"]
