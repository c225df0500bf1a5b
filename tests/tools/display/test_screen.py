"""Nothing that somebody else wrote moves a terminal's cursor, whichever command shows it; no way leads round that."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import pytest
import structlog
from onnx import TensorProto, helper
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from camgraph.pipeline.foreign_text import printable
from camgraph.pipeline.system.side_channel import Client, SideChannel
from camgraph.tools.cli import COMMANDS
from camgraph.tools.display.console import SafeConsole

ROOT = Path(__file__).parents[3]
PLANTED = "\x1b]0;planted\x07\x1b[31mred\x1b[2J\x9b2J\x9dtitle\x9c\x7f\r\u202e\u2066\u2028\u2029\u200f"
"""All kinds: C0, C1, DEL, bidirectional controls, separators of lines."""
NAME = "a\x1b[31mred\x07\u202e"
"""What a file may be called, and a key, and an argument."""
LIMIT_S = 120
GRAPH = """
version: 1
name: shown{pid}
cameras: {{a: {{frames: 300, pace_ms: 10}}}}
stages:
  src: {{use: count_source}}
  bad: {{use: crash, from: src, with: {{how: speak, camera: a}}}}
  emit: {{use: emit, from: bad}}
  out: {{use: sink_jsonl, from: events, with: {{path: {path}}}}}
"""

Command = Callable[..., str]


@pytest.mark.processes
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_ends_no_command(tmp_path: Path, closed: str) -> None:
    for words, status in (("--version", 0), ("check no.yaml", 2), ("explain nothing", 2)):
        line = f'"$0" -m camgraph {words} {closed}'
        done = subprocess.run(
            ["sh", "-c", line, sys.executable],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == status, done
        assert "Traceback" not in done.stderr
        assert "Error" not in done.stdout + done.stderr


CHILD_OF_GUARDED = """
import subprocess, sys
from camgraph.tools.display.screen import guarded
with guarded():
    child = "import sys; sys.exit(None in (sys.stdin, sys.stdout, sys.stderr))"
    sys.exit(subprocess.run([sys.executable, "-c", child]).returncode)
"""


@pytest.mark.processes
@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_the_processes_of_a_run_have_standard_streams(closed: str) -> None:
    command = ["sh", "-c", f'"$0" -c "$1" {closed}', sys.executable, CHILD_OF_GUARDED]
    assert subprocess.run(command, cwd=ROOT, timeout=LIMIT_S, check=False).returncode == 0


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    """Runs `camgraph` on pipes; what it shows on both of them."""
    with tempfile.TemporaryDirectory(prefix="cgs", dir="/tmp") as runtime:
        environ = {**os.environ, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": str(tmp_path / "state")}

        def run(*words: str, stdin: str = "") -> str:
            done = subprocess.run(
                [sys.executable, "-m", "camgraph.tools.cli", *words],
                cwd=tmp_path,
                env=environ,
                input=stdin.encode(errors="surrogateescape"),
                capture_output=True,
                timeout=LIMIT_S,
                check=False,
            )
            return (done.stdout + done.stderr).decode()

        yield run


def harmless(message: str) -> bool:
    return all(letter.isprintable() or letter in "\n\t" for letter in message)


def key(text: str) -> str:
    """As YAML writes it, so that the file itself holds no control character."""
    return json.dumps(text)


def hostile_model(path: Path) -> Path:
    """Names of inputs, outputs and metadata that are none."""
    node = helper.make_node("Identity", [NAME], [f"out{NAME}"])
    inputs = [helper.make_tensor_value_info(NAME, TensorProto.FLOAT, [1, 3, 64, 64])]
    outputs = [helper.make_tensor_value_info(f"out{NAME}", TensorProto.FLOAT, [1, 3, 64, 64])]
    model = helper.make_model(
        helper.make_graph([node], NAME, inputs, outputs),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
        producer_name=NAME,
    )
    helper.set_model_props(model, {"task": NAME, "names": f"{{0: {NAME!r}}}", NAME: NAME})
    onnx.save(model, str(path))
    return path


GRAPHS = {
    "a key": f"version: 1\n{key(NAME)}: 1\ncameras: {{a: {{frames: 1}}}}\nstages: {{s: {{use: count_source}}}}\n",
    "a value": f"version: {key(NAME)}\nname: {key(NAME)}\ncameras: {{{key(NAME)}: {{frames: {key(NAME)}}}}}\n",
    "a stage": f"version: 1\ncameras: {{a: {{frames: 1}}}}\nstages: {{s: {{use: {key(NAME)}, from: {key(NAME)}}}}}\n",
    "an address": f"version: 1\ncameras: {{a: {{url: {key('rtsp://h/' + NAME)}}}, b: {{url: {key(NAME)}}}}}\n"
    "stages: {s: {use: capture}}\n",
    "a model": "version: 1\ncameras: {a: {url: x.mp4}}\nstages:\n  s: {use: capture}\n"
    "  p: {use: preprocess, from: s}\n"
    f"  i: {{use: infer, from: p, with: {{model: {key(NAME)}}}}}\n",
    "a tag": "version: 1\ncameras: !<%1B[31m> {}\nstages: {}\n",
    "a variable": "version: 1\nname: ${PLANTED}\ncameras: {}\nstages: {}\n",
}


@pytest.mark.parametrize("what", GRAPHS)
@pytest.mark.parametrize("words", ["check", "run", "graph", "run --json-logs"])
def test_a_graph_file(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, words: str) -> None:
    monkeypatch.setenv("PLANTED", NAME)
    (tmp_path / "g.yaml").write_text(GRAPHS[what])
    result = command(*words.split(), "g.yaml")
    assert result
    assert harmless(result), ascii(result)


def test_a_graph_file_in_the_old_way_of_bytes(command: Command, tmp_path: Path) -> None:
    for content in (b"version: \x1b[31m1\n", b"\xff\xfe\x1b[31m", b"version: 1\n\xc2\x9b2J: 1\n"):
        (tmp_path / "g.yaml").write_bytes(content)
        assert harmless(command("check", "g.yaml"))


ARGUMENTS = {
    "demo": [["--frobs" + NAME], [NAME]],
    "init": [
        [NAME],
        [".", "--camera", NAME, "--tell", "fall", "--yes"],
        [".", "--camera", NAME + "=" + NAME, "--tell", NAME],
        [".", "--camera", "rtsp://" + NAME, "--tell", "fall", "--no-try"],
        [".", "--camera", "rtsp://127.0.0.1:9/" + NAME, "--tell", "fall", "--yes"],
        [".", "--camera", "a=g.yaml", "--tell", "fall", "--between", NAME, "--in", NAME],
        [NAME, "--camera", "rtsp://h/a", "--tell", "fall", "--no-try", "--mail-to", NAME, "--mail-server", NAME],
    ],
    "run": [[NAME], ["--name", NAME, "g.yaml"], ["--" + NAME]],
    "serve": [[NAME], ["--name", NAME, "g.yaml"], ["g.yaml", "--address", NAME]],
    "watch": [[NAME], ["rtsp://" + NAME], ["x.mp4", "--name", NAME], ["x.mp4", "--rules", NAME], [NAME, NAME]],
    "check": [[NAME], [NAME + "/" + NAME]],
    "plan": [[NAME], ["g.yaml", "--cameras", NAME], ["g.yaml", "--max-fps", NAME]],
    "graph": [[NAME], ["g.yaml", "--format", NAME]],
    "schema": [[NAME]],
    "actions": [[NAME]],
    "stages": [[NAME]],
    "status": [["--name", NAME]],
    "top": [["--name", NAME]],
    "stop": [["--name", NAME]],
    "explain": [[NAME], ["--" + NAME]],
    "cameras": [[NAME], ["add", NAME, NAME], ["list", "--name", NAME], ["remove", NAME]],
    "reload": [[NAME], ["--name", NAME]],
    "switch": [[NAME], ["--name", NAME], [NAME, "on"], ["armed", NAME]],
    "picture": [[NAME], [NAME, "--name", NAME], [NAME, "--out", NAME]],
    "sinks": [[NAME], ["test", NAME], ["test", "g.yaml", NAME]],
    "incidents": [["--in", NAME], ["show", NAME, "--in", "."], ["--camera", NAME, "--in", "."], ["--since", NAME]],
    "counter": [[NAME], ["--name", NAME], [NAME, "reset"], ["visitors", NAME], ["visitors", "--camera", NAME]],
    "outbox": [
        [NAME],
        ["status", "--name", NAME],
        ["list", "--sink", NAME],
        ["list", "--since", NAME],
        ["show", NAME],
        ["requeue", NAME, NAME],
        ["drop", NAME, "--older", NAME],
    ],
    "model": [
        [NAME],
        ["inspect", NAME],
        ["bench", NAME],
        ["profile", NAME],
        ["compare", NAME, NAME],
        ["prepare", NAME],
    ],
    "service": [
        [NAME],
        ["install", NAME, "--dry-run"],
        ["install", "g.yaml", "--dry-run", "--name", NAME],
        ["install", "g.yaml", "--dry-run", "--secret", NAME],
        ["uninstall", NAME],
    ],
    "farm": [[NAME], ["--" + NAME]],
    "doctor": [[NAME]],
    "help": [[NAME], ["run", NAME]],
    "assets": [[NAME], ["pull", NAME]],
    NAME: [[]],
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_stands_in_a_command_line(command: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "g.yaml").write_text(GRAPHS["a key"])
    for words in ARGUMENTS[name]:
        result = command(name, *words)
        assert result
        assert harmless(result), ascii(result)


def test_every_command_is_tried() -> None:
    assert set(COMMANDS) <= set(ARGUMENTS)


@pytest.mark.parametrize("words", ["inspect", "inspect --json", "profile", "bench --rounds 1 --seconds 0.1"])
def test_a_model(command: Command, tmp_path: Path, words: str) -> None:
    hostile_model(tmp_path / "m.onnx")
    for name in ("m.onnx", NAME):
        (tmp_path / NAME).write_bytes(b"\x1b[31m nothing of a model")
        result = command("model", *words.split(), name)
        assert result
        assert harmless(result), ascii(result)


def test_names_of_files_that_are_no_utf_8(command: Command, tmp_path: Path) -> None:
    odd = os.fsdecode(b"\xff\x1b[31m\x9b.mp4")
    (tmp_path / odd).write_bytes(b"no film")
    for words in (["check", odd], ["watch", odd], ["model", "inspect", odd], ["run", odd]):
        result = command(*words)
        assert result
        assert harmless(result), ascii(result)


@pytest.mark.parametrize("quiet", [True, False])
def test_a_run_in_plain_lines(command: Command, tmp_path: Path, *, quiet: bool) -> None:
    """A sink's path, what libraries write, warnings, and a thread that fails."""
    (tmp_path / "g.yaml").write_text(GRAPH.format(pid=os.getpid(), path=key(NAME + ".jsonl")))
    result = command("run", "g.yaml", *(["--quiet"] if quiet else []))
    assert "a library: " in result
    assert "thread_failed" in result
    assert harmless(result), ascii(result)


# ---- a run that is nothing but hostile


class HostileRun:
    """A control socket that answers every question with planted texts, as a damaged run might."""

    def __init__(self, folder: Path, name: str) -> None:
        from camgraph.pipeline.system.run_folder import RunFolder

        self._folder = RunFolder(name)
        self._channel = SideChannel(
            self._folder.control,
            self._answer,
            structlog.get_logger(),
            name="hostile",
            within_s=60,
            most_request=1 << 20,
        )
        self._channel.serve()

    def _answer(self, client: Client) -> str:
        camera = {"state": PLANTED, "why": PLANTED, "error": PLANTED, "fps": 1.0, "frames": 3, "drops": 0}
        event = {"time": PLANTED, "camera": PLANTED, "action": PLANTED, "phase": "start", "people": [1]}
        answers = {
            "status": {"graph": PLANTED, "cameras": {PLANTED: camera}, "stages": {PLANTED: {}}, "events": [event]},
            "cameras": {"cameras": {PLANTED: camera}, "coming": [PLANTED], "problems": {PLANTED: PLANTED}},
        }
        return json.dumps(answers.get(json.loads(client.message)["op"], {"error": f"no: {PLANTED}"}))

    def close(self) -> None:
        self._channel.close()
        self._folder.close()


@pytest.fixture
def hostile_run(tmp_path: Path) -> Iterator[str]:
    name = f"hostile{os.getpid()}"
    run = HostileRun(tmp_path, name)
    yield name
    run.close()


SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")
"""What our own tables may have on a terminal: colours, and nothing else."""


@pytest.mark.parametrize("words", ["status", "status --json", "cameras list", "stop", "cameras pause x"])
def test_what_a_run_answers(hostile_run: str, words: str) -> None:
    command = [sys.executable, "-m", "camgraph.tools.cli", *words.split(), "--name", hostile_run]
    done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
    output = (done.stdout + done.stderr).decode()
    assert "planted" in output
    assert harmless(output), ascii(output)
    on_terminal = terminal_shows(command)
    assert "planted" in on_terminal
    assert harmless(SEQUENCE.sub("", on_terminal.replace("\r\n", "\n"))), ascii(on_terminal)
    assert "\x1b[31mred" not in on_terminal


def terminal_shows(command: list[str], *, until: bytes = b"", cwd: Path | None = None) -> str:
    """All that a terminal gets to see; with `until`, the program is ended as soon as that has been seen."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
    child = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env={**os.environ, "TERM": "xterm"}
    )
    os.close(theirs)
    output = b""
    try:
        while piece := os.read(ours, 1 << 16):
            output += piece
            if until and until in output:
                child.send_signal(signal.SIGTERM)
                until = b""
    except OSError:  # what a terminal says when its other end is closed
        pass
    child.wait(LIMIT_S)
    os.close(ours)
    return output.decode()


def test_the_live_table(tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text(GRAPH.format(pid=os.getpid(), path=key(NAME + ".jsonl")))
    output = terminal_shows([sys.executable, "-m", "camgraph.tools.cli", "run", "g.yaml"], cwd=tmp_path)
    assert "thread_failed" in output
    ours = r"\x1b\[(?:[0-9;]*m|[0-9]*[AGK]|\?25[hl]|2K)|\r"
    assert harmless(re.sub(ours, "", output)), ascii(output)
    assert "\x1b[31mred" not in output
    assert "\x1b[31mm" not in output


def test_tables_escape_all_their_text() -> None:
    class Terminal:
        output = ""
        encoding = "utf-8"

        def write(self, text: str) -> int:
            self.output += text
            return len(text)

        def flush(self) -> None:
            pass

        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    console = SafeConsole(terminal, width=400, color_system=None)  # type: ignore[arg-type]
    table = Table(PLANTED, title=PLANTED, caption=PLANTED)
    table.add_row(PLANTED)
    table.add_row(Text(PLANTED, "red"))
    console.print(Group(table, Panel(PLANTED, title=PLANTED), Text(PLANTED)), PLANTED)
    console.print(PLANTED, soft_wrap=True)
    assert "planted" in terminal.output
    assert harmless(terminal.output), ascii(terminal.output)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("größer, 人\tb\nc\r\nd", "größer, 人\tb\nc\nd"),
        ("a\rb", r"a\rb"),
        (PLANTED[:3], r"\x1b]0"),
        ("\ud800", r"\ud800"),
        ("a\u200eb\u2028", r"a\u200eb\u2028"),
    ],
)
def test_lines_stay_lines(text: str, expected: str) -> None:
    assert printable(text) == expected


# ---- a standard error that takes nothing for a while


FULL = """
import fcntl, os, resource, signal, struct, sys, termios, time
import camgraph.tools.display.screen
from camgraph.tools.display.screen import guarded, log_line
from camgraph.pipeline.system.logs import log_to_stderr
import structlog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
as_json = sys.argv[1] == "json"
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)

def let(size):  # of this process and its children
    children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
    for pid in (0, *map(int, children)):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, most))

def waiting():  # for the process that writes
    pump = camgraph.tools.display.screen._pump_of_this_process
    return struct.unpack("i", fcntl.ioctl(pump.lines, termios.FIONREAD, b"0000"))[0]

with guarded(as_json=as_json):
    log_to_stderr(as_json=as_json, sink=log_line if as_json else None)
    log = structlog.get_logger()
    log.info("before")
    while "before" not in open(sys.argv[2]).read():
        time.sleep(0.01)
    let(os.stat(sys.argv[2]).st_size + 5)
    for number in range(3):
        log.info("lost", number=number)
        while as_json and waiting():  # when it has read one line, it is done with the one before
            time.sleep(0.01)
    let(most)
    log.info("behind")
"""


@pytest.mark.parametrize("how", ["json", "text"])
def test_a_log_goes_on_when_its_disk_has_room_again(tmp_path: Path, how: str) -> None:
    """A limit on the size of files stands in for the disk: that one can be lifted."""
    log = tmp_path / "log"
    with log.open("ab") as file:
        done = subprocess.run(
            [sys.executable, "-c", FULL, how, str(log)], cwd=ROOT, stderr=file, timeout=LIMIT_S, check=False
        )
    output = log.read_text()
    assert done.returncode == 0, output
    lines = output.splitlines()
    assert "before" in lines[0]
    assert "behind" in lines[-1]
    if how == "json":
        assert all("event" in json.loads(line) for line in lines), output
    logged = [line for line in lines if "File too large" in line]
    assert logged, output


LAST_WORDS = """
import os, sys
from camgraph.tools.display.screen import guarded
with guarded():
    print("a line", file=getattr(sys, sys.argv[1]))
    os._exit(0)
"""


@pytest.mark.parametrize(("stream", "unbuffered"), [("stdout", "1"), ("stderr", "1"), ("stderr", "")])
def test_a_line_is_there_before_a_process_dies(stream: str, unbuffered: str) -> None:
    """Most images of containers set PYTHONUNBUFFERED, and pipe both streams."""
    done = subprocess.run(
        [sys.executable, "-c", LAST_WORDS, stream],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert getattr(done, stream) == "a line\n"


@pytest.mark.parametrize("words", ["stages", "schema", "run --help"])
def test_a_standard_output_that_takes_nothing_is_told(words: str) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "camgraph.tools.cli", *words.split()]
        done = subprocess.run(
            command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False
        )
    assert done.stderr == "the standard output cannot be written: No space left on device\n"
    assert done.returncode == 3


# ---- no way round it

EXCEPT = {
    "tools/display/screen.py": {"__stderr__", "1", "2"},
    "tools/display/console.py": {"Console"},
    # Opened to see whether there is one.
    "tools/display/running.py": {"/dev/tty"},
    # Lines of events, which are JSON.
    "stages/sinks/sink_jsonl.py": {"1"},
    # A program whose output goes through a pipe to the one that started it.
    "stages/video/examination.py": {"sys.stdout.buffer"},
}
"""The place itself, and why others are none."""
PROGRAMS = (
    "tools/scenes/simulator/", "tools/lab/benchmarks/", "tools/lab/proofs/", "tools/measuring/",
)  # fmt: skip
"""Programs beside `camgraph`, for those who develop it: a simulator, benchmarks, proofs."""
TERMINALS = ("/dev/tty", "/dev/stderr", "/dev/stdout", "/dev/fd/", "/proc/self/fd/1", "/proc/self/fd/2")
WRITERS = {"write", "open", "fdopen", "FileIO", "LineStream", "EscapedStream", "dup", "dup2"}
FORBIDDEN = {"print", "pprint", "print_exc", "print_exception", "Console", "PrintLogger", "PrintLoggerFactory"}
"""`print` alone: a method of that name belongs to a console."""
FORBIDDEN |= {"input", "click.confirm", "click.prompt"}
"""Their question would be seen after the answer: `tools.display.questions` asks."""


def ways_round(code: str) -> set[str]:
    """What in a module could lead to a terminal without an escape."""
    found = set[str]()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute | ast.Constant):
            name = node.attr if isinstance(node, ast.Attribute) else node.value
            found |= {name} & {"__stdout__", "__stderr__", *TERMINALS}
        if (
            isinstance(node, ast.Attribute)
            and node.attr == "buffer"
            and re.search("stdout|stderr", ast.unparse(node.value))
        ):
            found.add(ast.unparse(node))
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            name = called.rpartition(".")[2]
            found |= {called, name if name != "print" else ""} & FORBIDDEN
            first = node.args[0] if node.args else None
            if name in WRITERS and isinstance(first, ast.Constant) and first.value in (1, 2):
                found.add(str(first.value))
    return found


def test_nothing_in_the_program_leads_round_it() -> None:
    found = {}
    for package in ("pipeline", "stages", "tools"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            ways = ways_round(path.read_text()) - EXCEPT.get(name, set())
            if ways and not name.startswith(PROGRAMS):
                found[name] = ways
    assert found == {}


@pytest.mark.parametrize(
    "code",
    [
        "print(1)",
        "import os; os.write(2, b'x')",
        "import sys; sys.stdout.buffer.write(b'x')",
        "import sys; sys.__stderr__.write('x')",
        "from rich.console import Console; Console().print('x')",
        "open('/dev/tty', 'w')",
        "import click; click.confirm('Sure?')",
        "import traceback; traceback.print_exc()",
    ],
)
def test_a_way_round_it_would_be_found(code: str) -> None:
    assert ways_round(code)
