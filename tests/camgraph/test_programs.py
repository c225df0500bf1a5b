"""Whole programs that use camgraph: scripts, notebooks, and how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest
from camgraph_test_stages.programs import BOUND_S, children_of, left_of, next_line
from camgraph_test_stages.waiting import until

Graphs = Callable[..., Path]
Script = Callable[..., "subprocess.Popen[str]"]

READING = """
import camgraph
for event in camgraph.run({path!r}):
    print(event.json()["seq"], int(event.earlier_run), flush=True)
"""
ENDLESS = "a: {frames: 100000, pace_ms: 50}"


def done(process: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    out, err = process.communicate(timeout=BOUND_S)
    return process.returncode, out.splitlines(), err


@pytest.mark.parametrize("stdin", [False, True], ids=["a script", "no main file"])
def test_no_main_guard_is_needed(counting: Graphs, script: Script, stdin: bool) -> None:
    status, lines, err = done(script(READING.format(path=str(counting(5))), stdin=stdin))
    assert (status, lines, err) == (0, [f"{n} 0" for n in range(5)], "")


def test_cells_of_a_notebook_within_a_loop_that_runs(counting: Graphs, script: Script) -> None:
    path = counting(3)
    cells = f"""
import asyncio, code
async def notebook():
    console = code.InteractiveInterpreter({{"__name__": "__main__"}})
    for cell in (
        "import camgraph",
        "run = camgraph.run({str(path)!r})",
        "print([event.json()['seq'] for event in run])",
        "run = camgraph.run({str(path)!r})",
        "print([event.json()['seq'] for event in run], run.result.status)",
    ):
        console.runsource(cell)
asyncio.run(notebook())
"""
    assert done(script(cells, stdin=True)) == (0, ["[0, 1, 2]", "[0, 1, 2] 0"], "")


def test_ctrl_c_ends_a_script_and_its_run(counting: Graphs, script: Script, name: str) -> None:
    process = script(READING.format(path=str(counting(cameras=ENDLESS))))
    assert next_line(process) == "0 0\n"
    children = children_of(process.pid)
    assert "python_events.0" in children
    process.send_signal(signal.SIGINT)
    status, _, err = done(process)
    assert status == -signal.SIGINT
    assert "KeyboardInterrupt" in err
    assert not [pid for pid in children.values() if Path(f"/proc/{pid}").exists()]
    assert not left_of(name)


def test_an_interrupt_at_any_moment_leaves_nothing_that_runs(counting: Graphs, script: Script, name: str) -> None:
    program = f"""
import gc, signal, threading
import camgraph
graph = camgraph.load({str(counting(cameras=ENDLESS))!r})
camgraph.run  # imports it: Python itself turns an interrupt within an import into other errors
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
interrupted = 0
for delay_ms in (1, 5, 20, 60, 150, 400, 900, 1500):
    signal.setitimer(signal.ITIMER_REAL, delay_ms / 1e3)
    try:
        for event in camgraph.run(graph):
            pass
    except KeyboardInterrupt:
        interrupted += 1
gc.collect()
mine = [one for one in threading.enumerate() if one.name.startswith("camgraph-")]
for one in mine:
    one.join({BOUND_S})
print(interrupted, len(mine) <= 3, any(one.is_alive() for one in mine))
"""
    process = script(program)
    out, err = process.communicate(timeout=4 * BOUND_S)
    assert (process.returncode, out) == (0, "8 True False\n"), err
    assert not left_of(name)


def test_killed_program_leaves_only_unread_events(counting: Graphs, script: Script, name: str) -> None:
    path = counting(cameras=ENDLESS)
    text = READING.format(path=str(path)) + "    if event.json()['seq'] == 2:\n        signal.pause()\n"
    process = script("import signal" + text)
    assert [next_line(process) for _ in range(3)] == ["0 0\n", "1 0\n", "2 0\n"]
    children = children_of(process.pid)
    process.kill()
    process.wait()
    until(lambda: not [pid for pid in children.values() if Path(f"/proc/{pid}").exists()])
    until(lambda: not left_of(name))
    _, lines, _ = done(script(READING.format(path=str(counting(1)))))
    earlier = [int(line.split()[0]) for line in lines if line.endswith(" 1")]
    assert earlier[0] in (1, 2)  # 2 was in hand when it was killed; of 1 the ack may have been on its way


def test_a_program_that_ends_without_a_word_ends_its_run(counting: Graphs, script: Script, name: str) -> None:
    path = counting(cameras=ENDLESS)
    status, lines, err = done(
        script(f"import camgraph\nrun = camgraph.run({str(path)!r})\nprint(next(run.events()).json()['seq'])\n")
    )
    assert (status, lines) == (0, ["0"])
    assert [line.split()[0] for line in err.splitlines()] == ["events_undelivered"]
    assert not left_of(name)


def test_an_error_in_the_loop_is_the_program_s_own(counting: Graphs, script: Script, name: str) -> None:
    path = counting(cameras=ENDLESS)
    status, _, err = done(script(f"import camgraph\nfor event in camgraph.run({str(path)!r}):\n    1 / 0\n"))
    assert status == 1
    trace, _, rest = err.partition("ZeroDivisionError: division by zero\n")
    assert trace.startswith("Traceback")
    assert [line.split()[0] for line in rest.splitlines()] == ["events_undelivered"]
    assert not left_of(name)


def test_a_fork_leaves_the_run_to_its_parent(counting: Graphs, script: Script) -> None:
    path = counting(20)
    program = f"""
import camgraph, multiprocessing
run = camgraph.run({str(path)!r})
events = run.events()
first = next(events)
worker = multiprocessing.get_context("fork").Process(target=print, args=("forked",), kwargs=dict(flush=True))
worker.start(); worker.join()
print(1 + len(list(events)))
"""
    assert done(script(program)) == (0, ["forked", "20"], "")


def test_signal_handlers_stay_as_they_are(counting: Graphs, script: Script) -> None:
    path = counting(3)
    program = f"""
import signal, threading
before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)]
hook = threading.excepthook
import camgraph
list(camgraph.run({str(path)!r}))
after = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)]
print(before == after, hook is threading.excepthook)
"""
    assert done(script(program)) == (0, ["True True"], "")


def test_the_run_s_lines_go_to_logging(counting: Graphs, script: Script) -> None:
    path = counting(cameras="a: {frames: 2}, b: {frames: 2, fail: its cable is gone}")
    program = f"""
import logging, camgraph
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
try:
    list(camgraph.run({str(path)!r}))
except camgraph.GaveUp as error:
    print(error)
"""
    status, lines, err = done(script(program))
    assert (status, lines) == (0, ["camera b: its cable is gone"])
    assert any(line.startswith("INFO camgraph running") for line in err.splitlines())


# ---- beside packages of the program


@pytest.mark.parametrize("kind", ["package", "folder", "module"])
def test_a_program_may_have_packages_of_such_names(script: Script, tmp_path: Path, kind: str) -> None:
    names = ("pipeline", "stages", "tools", "configs")
    for name in names:
        (tmp_path / name).mkdir()
        file = {"package": f"{name}/__init__.py", "folder": f"{name}/own.py", "module": f"{name}.py"}[kind]
        (tmp_path / file).write_text("MINE = True\n")
    mine = [f"{name}.own" if kind == "folder" else name for name in names]
    uses = f"import {', '.join(mine)}\nprint({' and '.join(f'{name}.MINE' for name in mine)})\n"
    assert done(script(f"{uses}import camgraph\nprint(camgraph.load)\n"))[1][0] == "True"
    ran = subprocess.run(
        [sys.executable, "-m", "camgraph", "stages"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_types_are_shipped() -> None:
    for package in ("camgraph", "camgraph.pipeline", "camgraph.stages", "camgraph.tools"):
        assert resources.files(package).joinpath("py.typed").is_file()


def test_a_look_from_outside_finds_the_run(counting: Graphs, script: Script, name: str) -> None:
    process = script(READING.format(path=str(counting(cameras=ENDLESS))))
    assert next_line(process) == "0 0\n"
    asked = subprocess.run(
        [sys.executable, "-m", "camgraph", "status", "--name", name, "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    assert json.loads(asked.stdout)["graph"] == name
    subprocess.run([sys.executable, "-m", "camgraph", "stop", "--name", name], check=True, capture_output=True)
    status, lines, _ = done(process)
    assert status == 0
    assert [int(line.split()[0]) for line in lines] == list(range(1, len(lines) + 1))
