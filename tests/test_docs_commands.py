"""Each command on the pages for users is run, in a folder with the files of its page.

A camera's address on a page is replaced by one of a simulated camera, and each video by a short one. A command that
cannot run here says so to the reader, in a comment that begins with `needs`: `camgraph watch 0   # needs a camera at
/dev/video0`. Such a comment in a line of its own holds for the rest of its block. On a page that is not run, each
command has one. The options and the number of arguments of all commands are checked. So are those of `python -m
camgraph.tools.NAME`, which measures or proves, and is never run here.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import av
import click
import pytest
from camgraph_test_stages.waiting import until
from click.testing import CliRunner

from camgraph.tools.assets import asset_path
from camgraph.tools.cli import main
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RUN_HERE = (
    "README",
    "first_five_minutes",
    "cameras",
    "farm",
    "files",
    "footage",
    "graph",
    "models",
    "no_events",
    "operations",
    "outbox",
    "plan",
    "rules",
    "sinks",
    "tracking",
)
"""Pages whose commands are run."""
RUN_ELSEWHERE = ("write_a_condition", "write_a_sink", "write_a_source", "write_a_stage")
"""Those whose commands the tests of these guides run, with the packages that they make."""
_OF_SYSTEM = "chmod chown mkdir openssl printf systemctl"
OTHERS = {
    *("export", "pip", "git", "python", "python3", "make", ".", "nc", "cd", "curl", "docker", "ffmpeg"),
    *_OF_SYSTEM.split(),
}
"""Programs that are not ours. If a line of a block begins with anything else, the page is wrong."""
DEPLOYED = sorted(path for path in (ROOT / "configs" / "deploy").iterdir() if path.is_file())
_FENCED = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^    \S.*\n(?:^    .*\n|\n(?=    ))*)", re.MULTILINE)
_FILE = re.compile(r"^```(?:yaml|python)\n# ([\w.]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RTSP = re.compile(r"rtsp://[^\s\"']+")
_TOOL = re.compile(r"python3? -m (camgraph\.tools(?:\.\w+)+)([^`\n#|<]*)")
_SPAN = re.compile(r"`[^`\n]+\n[^`\n]+`")
_DEPLOYED = re.compile(r"`camgraph ([^`]+)`|\bcamgraph ([^>`\n]+) >|\[\W?camgraph\W?, ([^\]]+)\]|bin/camgraph (.+)")
_NEEDS = re.compile(r"#\s*needs ")
VIDEOS = (
    "your-video.mp4",
    "door.mp4",
    "till.mp4",
    "hall.mp4",
    "street.mp4",
    "clip.mp4",
    "clips/one.mkv",
    "clips/two.mkv",
)
LONG_S = 240


@dataclass(frozen=True, slots=True)
class Line:
    """A command of a page: its words, and whether it can run here."""

    words: tuple[str, ...]
    runs: bool


def page_path(page: str) -> Path:
    return (ROOT if page in ("README", "CONTRIBUTING") else DOCS) / f"{page}.md"


def blocks_of(text: str) -> Iterator[list[Line]]:
    """The commands of each block: fenced as `sh`, or indented and beginning with `camgraph`."""
    for block in _FENCED.findall(text):
        yield list(_lines(textwrap.dedent(block), strict=True))
    without = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for block in _INDENTED.findall(without):
        if re.search(r"^    (\$ )?camgraph \S", block, re.MULTILINE):
            yield list(_lines(textwrap.dedent(block), strict=False))


def _lines(block: str, *, strict: bool) -> Iterator[Line]:
    runs = True
    for line in block.replace("\\\n", " ").splitlines():
        if line.startswith("#") and _NEEDS.match(line):
            runs = False
        words = shlex.split(line.removeprefix("$ ").replace("${", "$\\{"), comments=True)
        words = [word.replace("$\\{", "${") for word in words]
        if not words:
            continue
        if re.match(r"(\$ )?(\S+/)?camgraph \S", line):
            yield Line(tuple(words[1:]), runs and not _NEEDS.search(line))
        elif strict:
            assert words[0] in OTHERS, f"neither a command of camgraph nor a known program: {line}"
            if words[0] == "make":
                yield Line(tuple(words), False)


ALL_PAGES = [
    "README",
    "CONTRIBUTING",
    *sorted(str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")),
]


@pytest.mark.parametrize("page", ALL_PAGES)
def test_each_command_of_a_page_exists_with_its_options(page: str) -> None:
    for block in blocks_of(page_path(page).read_text("utf-8")):
        for line in block:
            require_usage(line.words)


@pytest.mark.parametrize("page", sorted({*ALL_PAGES} - {*RUN_HERE} - {*RUN_ELSEWHERE}))
def test_a_page_that_is_not_run_says_what_its_commands_need(page: str) -> None:
    lines = [line for block in blocks_of(page_path(page).read_text("utf-8")) for line in block]
    assert [" ".join(line.words) for line in lines if line.runs] == [], "add a comment `# needs ...`, or run the page"


def test_the_readme_begins_with_the_commands_that_ci_calls() -> None:
    first = next(blocks_of(page_path("README").read_text("utf-8")))
    assert [" ".join(line.words) for line in first] == ["make demo", "make test"]
    called = re.findall(r"^make ([a-z]+)", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    assert called == ["lint", "test", "demo"]


def tool_commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """The module and the words behind it of each `python -m tools.NAME ...`, in a block or within a sentence."""
    text = text.replace("<!--", "").replace("-->", "").replace("\\\n", " ")
    for module, words in _TOOL.findall(_SPAN.sub(lambda found: found[0].replace("\n", " "), text)):
        yield module, shlex.split(words)


@pytest.mark.parametrize("page", ALL_PAGES)
def test_each_tool_of_a_page_exists_with_its_options(page: str) -> None:
    for module, words in tool_commands(page_path(page).read_text("utf-8")):
        require_tool_usage(module, words)


def test_pages_name_many_tools() -> None:
    """Guards the search itself: a pattern that finds nothing would check nothing."""
    assert sum(len(list(tool_commands(page_path(page).read_text("utf-8")))) for page in ALL_PAGES) > 50


def require_tool_usage(module: str, words: list[str]) -> None:
    """Fails if there is no such tool, option or argument; the values are not looked at."""
    tool = importlib.import_module(module)
    if hasattr(tool, "__path__"):
        tool = importlib.import_module(f"{module}.__main__")
    if isinstance(tool.main, click.Command):
        _, left, _ = tool.main.make_parser(click.Context(tool.main)).parse_args(list(words))
    else:  # a plain function, which takes nothing
        left = words
    assert not left, f"too many arguments: python -m {module} {' '.join(words)}"


def require_usage(words: tuple[str, ...]) -> None:
    """Fails if there is no such command, option or argument; the values are not looked at."""
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        assert set(words[1:]) <= set(targets), words
        return
    command: click.Command = main
    context = click.Context(main, info_name="camgraph")
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        below = command.get_command(context, rest[0])
        assert below is not None, f"no command: camgraph {' '.join(words)}"
        context = click.Context(below, parent=context, info_name=rest.pop(0))
        command = below
    _, left, _ = command.make_parser(context).parse_args(rest)
    assert not left, f"too many arguments: camgraph {' '.join(words)}"


def deployed_commands(text: str) -> Iterator[tuple[str, ...]]:
    """The commands in a file for containers or monitors: in a text, as a list, in a shell, or by their path."""
    text = re.sub(r"\{\{.*?\}\}", "TEMPLATE", text)
    for found in _DEPLOYED.findall(text):
        yield tuple(shlex.split(next(filter(None, found)).replace(",", " ")))


@pytest.mark.parametrize("path", DEPLOYED, ids=lambda path: path.name)
def test_each_command_in_a_deployed_file_exists_with_its_options(path: Path) -> None:
    for words in deployed_commands(path.read_text("utf-8")):
        require_usage(words)


def test_commands_are_found_in_deployed_files() -> None:
    found = [words for path in DEPLOYED for words in deployed_commands(path.read_text("utf-8"))]
    kinds = ("check", "status --check", "status --json", "outbox list --sink TEMPLATE --dead", "assets pull ${ASSETS}")
    assert {tuple(words.split()) for words in kinds} <= set(found)
    (wrong,) = deployed_commands("lost: `camgraph outbox list {{ $labels.sink }} --dead`")
    with pytest.raises(AssertionError, match="too many arguments"):
        require_usage(wrong)


class Reader:
    """Somebody who types the commands of a page, one after the other, in a folder with its files."""

    def __init__(self, folder: Path, cameras: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._cameras = cameras
        self._started: list[subprocess.Popen[bytes]] = []
        monkeypatch.chdir(folder)

    def write_files(self, text: str) -> None:
        for name, content in _FILE.findall(text):
            is_alone = "rtsp://" not in content and "camgraph plan" not in text
            (self.folder / name).write_text(_cheaper(self.served(content), "one" if is_alone else "compact"))

    def served(self, text: str) -> str:
        """With the addresses of simulated cameras instead of those on the page."""
        seen: dict[str, str] = {}
        return _RTSP.sub(lambda found: seen.setdefault(found[0], self._cameras[len(seen) % len(self._cameras)]), text)

    def type(self, words: tuple[str, ...]) -> None:
        reported = [self.served(word) for word in words]
        if reported[0] == "watch":  # cheaper than to look for the best size, and than a process for each stage
            reported += ["--size", "128", *([] if self._is_live(reported) else ["--single-process"])]
        if reported[0] == "plan":  # shorter, and with fewer of the cameras
            reported += ["--seconds", "1", "--sample", "2"]
        if reported[0] == "farm":
            self._begin([*reported, "--port", "0"])
            until(lambda: "Ctrl-C" in self._log(), LONG_S)
            self._end(signal.SIGINT, status=0)
        elif reported[0] == "stop":
            self.leave()
        elif reported[0] not in ("run", "watch"):
            if "--check" in reported:  # on a busy machine a camera may just have been lost, and is back soon
                until(lambda: CliRunner().invoke(main, reported).exit_code == 0, LONG_S, self._log)
            else:
                self._call(reported)
        elif self._is_live(reported):
            self._begin(reported)
            until(lambda: self._status() == 0, LONG_S, self._log)
        else:
            self._begin(reported)
            self._end(None, status=0)

    def leave(self) -> None:
        """At the end of a block: a run that goes on is stopped."""
        if self._started:
            self._call(["stop"])
            self._end(None, status=0)

    def close(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()

    def _is_live(self, words: list[str]) -> bool:
        texts = [(self.folder / word).read_text() for word in words if word.endswith(".yaml") and words[0] == "run"]
        return any("rtsp://" in text for text in [*words, *texts])

    def _begin(self, words: list[str]) -> None:
        if self._started:  # a second run, in the same terminal: the first one was stopped
            self.leave()
        with (self.folder / "log").open("wb") as log:
            command = [sys.executable, "-m", "camgraph", *words]
            self._started.append(
                subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            )
        until(lambda: self._log() or self._started[-1].poll() is not None, LONG_S)

    def _end(self, number: signal.Signals | None, *, status: int) -> None:
        process = self._started.pop()
        if number is not None:
            process.send_signal(number)
        try:
            assert process.wait(LONG_S) == status, self._log()
        finally:
            process.kill()

    def _log(self) -> str:
        return (self.folder / "log").read_text()

    def _call(self, words: list[str]) -> None:
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, f"camgraph {' '.join(words)}: {result.output}"

    def _status(self) -> int:
        assert self._started[-1].poll() is None, self._log()
        return CliRunner().invoke(main, ["status", "--check"]).exit_code


@pytest.fixture(scope="module")
def addresses() -> Iterator[list[str]]:
    """Two simulated cameras; what needs them is skipped if the clip or the model is not pulled."""
    for asset in ("vtest.avi", "movenet-multipose.onnx"):
        if not asset_path(asset).is_file():
            pytest.skip(f"no pulled {asset} (run: camgraph assets pull {asset})")
    clip = ClipSettings(path=str(asset_path("vtest.avi")), width=384, height=288, fps=5, seconds=4)
    with RtspSimulator([CameraSettings(name=name, clip=clip) for name in ("cam1", "cam2")]) as simulator:
        yield [camera.url for camera in simulator.cameras]


@pytest.fixture
def reader(tmp_path: Path, addresses: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    (tmp_path / "clips").mkdir()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "pose.onnx").symlink_to(asset_path("movenet-multipose.onnx"))
    _write_clip(tmp_path / VIDEOS[0])
    for video in VIDEOS[1:]:
        (tmp_path / video).write_bytes((tmp_path / VIDEOS[0]).read_bytes())
    monkeypatch.setenv("CAMGRAPH_STATE_DIR", str(tmp_path / "state"))
    one = Reader(tmp_path, addresses, monkeypatch)
    try:
        yield one
    finally:
        one.close()


def _cheaper(graph: str, way: str) -> str:
    """The same graph in fewer processes and with a smaller picture: only that it runs is looked at here.

    `way`: "one", unless a command asks the run, as it does of cameras, or judges its processes, as `plan` does.
    """
    graph = graph.replace("use: preprocess, from: capture}", "use: preprocess, from: capture, with: {max_side: 128}}")
    return graph.replace("stages:\n  capture", f"processes: {way}\nstages:\n  capture")


def _write_clip(path: Path) -> None:
    """Less than a second of the pulled clip, small."""
    with av.open(str(asset_path("vtest.avi"))) as source, av.open(str(path), "w", format="matroska") as target:
        stream = target.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 384, 288, "yuv420p"
        for number, frame in enumerate(source.decode(video=0)):
            if number == 4:
                break
            target.mux(stream.encode(frame.reformat(384, 288, "yuv420p")))
        target.mux(stream.encode())


@pytest.mark.parametrize("page", RUN_HERE)
def test_the_commands_of_a_page_run(page: str, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page_path(page).read_text("utf-8")
    for name in re.findall(r"\$\{(?:secret:)?([A-Za-z0-9_]+)\}", text):
        monkeypatch.setenv(name, "secret-of-nobody")
    reader.write_files(page_path("cameras").read_text("utf-8"))  # "operations" and "outbox" go on with this graph
    reader.write_files(text)
    for block in blocks_of(text):
        for line in block:
            if line.runs:
                reader.type(line.words)
        reader.leave()


def test_the_night_is_chosen_and_shown(reader: Reader) -> None:
    """The graph of "first_five_minutes.md", on a clip that was recorded at night, with a rule that fires in it."""
    reader.write_files(page_path("first_five_minutes").read_text("utf-8"))
    graph = (reader.folder / "ward.yaml").read_text()
    night = 'room-3: {url: "asset:vtest.avi", duration_s: 3, max_fps: 5, start_at: "2026-11-22T23:00:00Z"}'
    graph = re.sub(r"room-3: \{.*\}", night, graph).replace("max_side: 128", "max_side: 512")
    (reader.folder / "ward.yaml").write_text(graph)
    rules = (reader.folder / "rules.yaml").read_text()
    rules = rules.replace("{use: fall,", "{id: fall, when: age >= 0.5s, for: 0.4s,")
    (reader.folder / "rules.yaml").write_text(rules)
    reader.type(("run", "ward.yaml"))
    events = [json.loads(line) for line in (reader.folder / "events.jsonl").read_text().splitlines()]
    started = [event["data"] for event in events if event["type"] == "camgraph.incident.start"]
    ready = {event["data"]["file"] for event in events if event["type"] == "camgraph.footage.ready"}
    assert started
    assert {data[kind] for data in started for kind in ("snapshot", "clip")} == ready
    assert all((reader.folder / name).stat().st_size > 1000 for name in ready)


def test_people_are_read_from_a_file_of_tracks(reader: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    """The script of "tracking.md"."""
    text = page_path("tracking").read_text("utf-8")
    reader.write_files(text.replace("{camera}.txt", "{camera}.jsonl"))
    reader.type(("run", "tracks.yaml"))
    (script,) = re.findall(r"```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = (reader.folder / "tracks" / "door.jsonl").read_text().splitlines()
    assert len(lines) == 4
    exec(compile(script, "tracking.md", "exec"), {})
    told = capsys.readouterr().out.splitlines()
    assert len(told) == sum(len(json.loads(line)["people"]) for line in lines)


@pytest.mark.parametrize("words", ["status --chek", "stats", "run a.yaml b.yaml", "cameras ad front x", "make demos"])
def test_a_command_that_does_not_exist_is_found(words: str) -> None:
    with pytest.raises((AssertionError, click.UsageError)):
        require_usage(tuple(words.split()))


@pytest.mark.parametrize("words", ["benchmarks.plna", "benchmarks.plan --cameras 4", "benchmarks.plan 4", "proofs"])
def test_a_tool_that_does_not_exist_is_found(words: str) -> None:
    module, *rest = words.split()
    with pytest.raises((AssertionError, click.UsageError, ImportError)):
        require_tool_usage(f"camgraph.tools.lab.{module}", rest)


def test_tools_are_found_in_blocks_and_in_sentences() -> None:
    text = (
        "    python -m camgraph.tools.a.b --x 1   # why\n\n"
        "Run `python -m camgraph.tools.c --way 'a\nb' DIR`, then\nmore.\n"
        "<!-- python -m camgraph.tools.d -->\n"
    )
    assert list(tool_commands(text)) == [
        ("camgraph.tools.a.b", ["--x", "1"]),
        ("camgraph.tools.c", ["--way", "a b", "DIR"]),
        ("camgraph.tools.d", []),
    ]


def test_commands_are_found_in_both_kinds_of_blocks() -> None:
    text = (
        "Text\n\n```sh\nexport A=b\ncamgraph run a.yaml \\\n    --quiet   # at once\n# needs a camera\n"
        "camgraph watch 0\n```\n\n    $ camgraph status\n    all is well\n\n    camgraph watch 1   # needs one\n"
        "\n```yaml\n    camgraph no\n```\n"
    )
    assert list(blocks_of(text)) == [
        [Line(("run", "a.yaml", "--quiet"), True), Line(("watch", "0"), False)],
        [Line(("status",), True), Line(("watch", "1"), False)],
    ]
    with pytest.raises(AssertionError):
        list(blocks_of("```sh\nrm -rf out\n```\n"))
