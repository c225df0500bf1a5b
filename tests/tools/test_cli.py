"""The command line: what it prints, its exit statuses, and that its help is quick."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from camgraph_test_stages.terminals import on_a_terminal
from camgraph_test_stages.waiting import until
from click.testing import CliRunner

from camgraph.pipeline.errors import BadItem, EnvironmentProblem, UserError
from camgraph.pipeline.graph import shared_memory
from camgraph.tools.cli import COMMANDS, LazyCommand, main

GRAPH = """\
version: 1
cameras: {front: {bytes: 1000}}
stages:
  count: {use: count_source}
  end: {use: collect, from: count, with: {path: x}}
"""


@pytest.fixture
def graph(tmp_path: Path) -> str:
    path = tmp_path / "g.yaml"
    path.write_text(GRAPH)
    return str(path)


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error."""
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, result.stdout, result.stderr


def test_a_right_graph_is_checked(graph: str) -> None:
    status, out, err = run("check", graph)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == f"{graph}: 1 camera, 2 stages, 2 processes: no mistakes"
    assert out.splitlines()[1].startswith("shared memory of the sources: 0.0 MB in 8 slots")


@pytest.mark.parametrize(
    ("word", "guess"), [("chek", "; did you mean `check`?"), ("wacth", "; did you mean `watch`?"), ("xyzzy", "")]
)
def test_an_unknown_command_is_a_mistake_with_the_nearest_name(word: str, guess: str) -> None:
    status, out, err = run(word, "g.yaml")
    assert (status, out) == (2, "")
    assert err.splitlines()[-1] == f"Error: no command is called {word}{guess}"


@pytest.mark.parametrize("words", [("check",), ("--frobs",), ("plan", "g.yaml", "--cameras", "x"), ("chek",)])
def test_a_mistake_in_the_command_line_has_an_id_on_a_terminal(words: tuple[str, ...]) -> None:
    status, shown = on_a_terminal(*words)
    assert status == 2
    assert shown.splitlines()[-1] == "more: camgraph explain option-value"


@pytest.mark.parametrize("words", [(), ("model",)])
def test_a_command_without_words_shows_its_help_alone(words: tuple[str, ...]) -> None:
    _, shown = on_a_terminal(*words)
    assert "Commands:" in shown
    assert "more: camgraph explain" not in shown


def test_all_mistakes_of_a_graph_go_to_standard_error(graph: str) -> None:
    Path(graph).write_text(GRAPH.replace("version: 1", "version: 3").replace("from: count", "from: cuont"))
    status, out, err = run("check", graph)
    assert (status, out) == (2, "")
    assert err == (
        f"{graph}:1:10: version: expected 1, got 3\n"
        "    version: 3\n"
        "             ^\n"
        f"{graph}:5:29: stages.end.from: no stage of this graph is called `cuont`; did you mean `count`?\n"
        "    end: {use: collect, from: cuont, with: {path: x}}\n"
        "                              ^\n"
    )


def test_too_little_shared_memory_is_the_machines_fault(graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, "free_shared_memory", lambda: 100)
    status, out, err = run("check", graph)
    assert status == 3
    assert "no mistakes" in out
    assert err == "/dev/shm is too small: make it larger (docker: --shm-size), or use fewer or smaller cameras\n"


def test_a_graph_is_drawn(graph: str) -> None:
    assert run("graph", graph)[1].startswith("flowchart LR\n")
    assert run("graph", graph, "--format", "dot")[1].startswith('digraph "g" {\n')
    status, _, err = run("graph", graph, "--format", "png")
    assert status == 2
    assert "'png' is not one of 'mermaid', 'dot'" in err


def test_the_stages_are_listed_with_types_package_and_purpose() -> None:
    status, out, _ = run("stages")
    assert status == 0
    lines = [line.split() for line in out.splitlines()]
    assert ["double", "Number", "->", "Number", "[camgraph-test-stages]"] in lines
    assert ["pair", "{left:", "Number,", "right:", "Number}", "->", "Number", "[camgraph-test-stages]"] in lines
    assert ["Twice", "the", "value."] in lines
    assert any(line[:1] == ["capture"] and line[-1] == "[camgraph]" for line in lines)


def test_one_stage_is_described() -> None:
    status, out, _ = run("stages", "collect_events")
    assert status == 0
    assert out == (
        "collect_events: Event -> nothing  [camgraph-test-stages]\n"
        "Writes `camera epoch seq value id` for each event.\n"
        "\n"
        "with:\n"
        "  path: string (required)\n"
        "      A file; lines are appended.\n"
        "  cost_ms: number >= 0 (default 0.0)\n"
        "      What one batch takes.\n"
        '  away: string (default "")\n'
        "      While there is a file of this name, nothing is taken; empty: always.\n"
        '  order: arrival | time (default "arrival")\n'
        "      As they come, or by time over all cameras.\n"
        "  refuses: integer >= 0 (default 0)\n"
        "      Events of frames whose seq is a multiple of this are refused; 0: none.\n"
        "  dies_of: integer (default -1)\n"
        "      The frame whose event kills its process; -1: none.\n"
        '  waits_for: string (default "")\n'
        "      A file; until it is there, the first call does not end.\n"
        '  calls: string (default "")\n'
        "      A file, for how many events each call had.\n"
        "\n"
        "counters:\n"
        "  dropped.refused: An event was refused, as the settings say.\n"
    )
    assert "cameras:\n  priority: integer >= 1, <= 100 (default 1)" in run("stages", "count_source")[1]


def test_settings_of_settings_stand_below_them() -> None:
    result = run("stages", "infer")[1]
    assert "  options: its own settings\n" in result
    assert "    cuda: its own settings\n" in result
    assert "      gpu_mem_limit: integer or null (default nothing)\n" in result


def test_a_mistyped_stage_is_the_users_mistake() -> None:
    assert run("stages", "duoble") == (2, "", "no stage is called `duoble`; did you mean `double`?\n")


def test_the_schema_is_json() -> None:
    status, out, _ = run("schema")
    assert status == 0
    rules = json.loads(out)["$defs"]["StageEntry"]["allOf"]
    assert {"capture", "double"} <= {rule["if"]["properties"]["use"]["const"] for rule in rules}


def test_a_broken_package_costs_only_its_own_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camgraph.tools.commands.graph_commands.stage_names", lambda: ("double", "zzz"))
    status, out, err = run("schema")
    assert (status, err) == (0, "left out: no stage is called `zzz`; see `camgraph stages`\n")
    assert len(json.loads(out)["$defs"]["StageEntry"]["allOf"]) == 1


@pytest.mark.parametrize(
    ("error", "status"),
    [(UserError("x"), 2), (EnvironmentProblem("x"), 3), (BadItem("x"), 1), (KeyboardInterrupt(), 130)],
)
def test_errors_have_their_exit_status(monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int) -> None:
    @click.command()
    def failing() -> None:
        raise error

    monkeypatch.setitem(vars(sys.modules[__name__]), "failing", failing)
    monkeypatch.setitem(COMMANDS, "failing", LazyCommand(__name__, "failing", "Fails."))  # type: ignore[misc]
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    found, out, err = run("failing")
    assert (found, out) == (status, "")
    assert err == ("" if status == 130 else "x\n")


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("camgraph.tools.commands.graph_commands.load_graph", broken)
    assert isinstance(CliRunner().invoke(main, ["check", "x"]).exception, ZeroDivisionError)


def test_every_command_is_listed_without_being_imported() -> None:
    done = subprocess.run([sys.executable, "-c", _LIST_IMPORTS], capture_output=True, text=True, timeout=60, check=True)
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)
    imported = set(done.stderr.split())
    assert not imported & {"pydantic", "yaml", "numpy", "cv2", "av", "onnxruntime", "zmq", "rich", "structlog"}


_LIST_IMPORTS = """
import sys
from camgraph.tools.cli import main
main(["--help"], standalone_mode=False)
print(*sys.modules, file=sys.stderr)
"""


def test_a_reader_that_goes_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "camgraph.tools.cli", "stages"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(write)
    assert done.stderr == b""
    assert done.returncode == 1


def _sleeps(pid: int) -> bool:
    """Whether its main thread waits for something."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("S")


def test_an_interrupt_is_130(tmp_path: Path) -> None:
    pipe = tmp_path / "g.yaml"
    os.mkfifo(pipe)
    child = subprocess.Popen([sys.executable, "-m", "camgraph.tools.cli", "check", str(pipe)], stderr=subprocess.PIPE)
    with pipe.open("wb"):  # opens when the child does, and keeps it waiting for text
        # Python does not notice an interrupt that comes just before it calls the system to read.
        until(lambda: _sleeps(child.pid))
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (130, b"")


CTRL_C_AT_AN_IMPORT = """
import os, signal, sys, time
class AtImport:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[-1]:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
sys.meta_path.insert(0, AtImport())
from camgraph.__main__ import main
module, sys.argv = sys.argv[-1], ["camgraph", "actions"]
sys.argv.append(module)
main()
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    "module",
    ["camgraph.tools.cli", "click", "camgraph.tools.display.screen", "camgraph.tools.commands.action_commands"],
)
def test_an_interrupt_while_it_begins_shows_no_traceback(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CTRL_C_AT_AN_IMPORT, module], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert done.returncode in (-signal.SIGINT, 130), "a shell shows 130 for both"
