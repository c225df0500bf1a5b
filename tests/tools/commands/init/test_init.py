"""From an empty folder to a graph that runs, with real cameras that are simulated."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import cv2
import numpy as np
import pytest
from camgraph_test_stages.brokers import free_port
from camgraph_test_stages.delivering import delivering, hand_in
from camgraph_test_stages.incident_views import incident
from camgraph_test_stages.waiting import until
from camgraph_test_stages.web_receiver import web_receiver
from click.testing import CliRunner, Result

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph import load_graph, load_plan
from camgraph.pipeline.graph.env_file import read_env_file
from camgraph.stages.rules.rule_set import read_rules
from camgraph.stages.sinks.sink_webhook import SinkWebhook
from camgraph.tools.assets.pull import asset_path
from camgraph.tools.cli import main
from camgraph.tools.commands.init import trial, wishes
from camgraph.tools.commands.init.command import _require_correct, choose_ways
from camgraph.tools.commands.init.dialog import Dialog
from camgraph.tools.scenes.simulator import CameraHandle, CameraSettings, ClipSettings, RtspSimulator

PASSWORD = """ it's "quiet"/#@58 """
LIMIT_S = 120.0
ON_ITS_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@pytest.fixture(scope="module")
def simulated() -> Iterator[Mapping[str, CameraHandle]]:
    clip = ClipSettings(width=160, height=96, fps=10, seconds=2)
    cameras = [
        CameraSettings(name="main", clip=clip, auth="digest", user="viewer", password=PASSWORD),
        CameraSettings(name="stream1", clip=clip, clock_offset_s=-600),
    ]
    with RtspSimulator(cameras) as simulator:
        yield {camera.name: camera for camera in simulator.cameras}


def place_of(camera: CameraHandle) -> str:
    """Its address without user and password."""
    return f"rtsp://127.0.0.1:{camera.port}/{camera.name}"


def connections(camera: CameraHandle) -> int:
    return camera.counts().connections


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(trial, "LOOK_S", 0.3)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def init(*words: str, **environ: str) -> Result:
    return CliRunner().invoke(main, ["init", *words], env=environ)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ---- by options


def test_a_script_needs_no_terminal(empty: Path, simulated: Mapping[str, CameraHandle]) -> None:
    camera = simulated["main"]
    address = f"rtsp://viewer:${{DOOR}}@127.0.0.1:{camera.port}/main"
    words = [
        "--camera",
        f"door={address}",
        "--tell",
        "fall",
        "--between",
        "21:00-06:00",
        "--time-zone",
        "Europe/Berlin",
    ]
    result = init("night", *words, "--yes", DOOR=PASSWORD)
    assert result.exit_code == 0, result.output
    assert "It works: H.264, 160 x 96, 10 frames a second." in result.output
    assert "camgraph serve graph.yaml --env-file secrets.env" in result.output
    made = contents(empty / "night")
    assert set(made) == {"graph.yaml", "rules.yaml", "secrets.env", ".gitignore", "door.jpg"}
    assert cv2.imread(str(empty / "night" / "door.jpg")).shape == (96, 160, 3)
    assert stat.S_IMODE((empty / "night" / "secrets.env").stat().st_mode) == 0o600
    assert not stat.S_IMODE((empty / "night" / "door.jpg").stat().st_mode) & 0o027, "it shows people"
    assert read_env_file(empty / "night" / "secrets.env") == {"DOOR_PASSWORD": PASSWORD}
    assert made[".gitignore"].split() == [b"secrets.env", b"/footage/", b"/events.jsonl", b"/door.jpg"]
    assert [name for name in made if b"quiet" in made[name]] == ["secrets.env"]
    assert "quiet" not in result.output
    assert b"""schedules: {night: {from: "21:00", to: "06:00"}}""" in made["rules.yaml"]
    assert b"{use: fall, during: night, severity: alarm}" in made["rules.yaml"]


def test_people_far_away_get_a_larger_picture(empty: Path, pulled_model: Path) -> None:
    clip = ClipSettings(path=str(asset_path("vtest.avi")), fps=5, seconds=4)
    with RtspSimulator([CameraSettings(name="yard", clip=clip)]) as simulator:
        address = f"yard={place_of(simulator.camera('yard'))}"
        result = init(
            "out", "--camera", address, "--camera", "dark=rtsp://127.0.0.1:9/a", "--tell", "somebody", "--yes"
        )
    assert "yard: people are far away, so the model gets a larger picture" in result.output
    assert 'with: {max_side: {yard: 768, "*": 384}}' in (empty / "out" / "graph.yaml").read_text()


def test_a_script_on_a_machine_with_utc_hears_it(empty: Path) -> None:
    """Most servers are set to UTC, and those who sleep there live by another clock."""
    words = ["--camera", "door=rtsp://127.0.0.1:9/a", "--tell", "fall", "--between", "night", "--yes", "--no-try"]
    result = init("night", *words, TZ="UTC")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "night is 21:00-06:00 UTC: this machine's clock is set to UTC." in text
    assert "set `time_zone` in rules.yaml" in text
    rules = (empty / "night" / "rules.yaml").read_text()
    assert "the machine was set to UTC. Write yours, such as Europe/Berlin.\ntime_zone: UTC" in rules


def test_a_night_in_a_room_with_a_bed(empty: Path) -> None:
    """The bed is drawn later; until then the rules go by a guess, which is said."""
    cameras = [word for name in ("hall", "room-3") for word in ("--camera", f"{name}=rtsp://127.0.0.1:9/a")]
    tell = [word for one in ("fall", "lying on the floor", "out of bed") for word in ("--tell", one)]
    result = init("night", *cameras, *tell, "--in", "room-3", "--between", "night", "--yes", "--no-try")
    assert result.exit_code == 0, result.output
    assert "on_the_floor and out_of_bed go by a guess: open the camera on the page" in " ".join(result.output.split())
    rules = read_rules(empty / "night" / "rules.yaml")
    assert [one.definition.id for one in rules.of_camera("room-3")] == ["fall", "on_the_floor", "out_of_bed"]
    assert rules.of_camera("hall") == []
    assert rules.rules["out_of_bed"].zones == ["bed"]
    assert "Draw zones and lines" in (empty / "night" / "rules.yaml").read_text()


def test_the_zone_of_the_machine_is_named(empty: Path) -> None:
    words = ["--camera", "door=rtsp://127.0.0.1:9/a", "--tell", "fall", "--between", "night", "--yes", "--no-try"]
    result = init("night", *words, TZ="Europe/Vienna")
    assert "night is 21:00-06:00 Europe/Vienna, the time zone of this machine." in " ".join(result.output.split())
    assert 'time_zone: "Europe/Vienna"' in (empty / "night" / "rules.yaml").read_text()


def test_who_cannot_be_asked_is_told_what_is_missing(empty: Path) -> None:
    result = init("night", "--camera", "door=rtsp://127.0.0.1:9/a", "--mail-to", "a@example.org")
    assert result.exit_code == 2
    assert "--tell" in result.output
    assert "--mail-server" in result.output
    assert "--camera" not in result.output
    assert set(contents(empty)) == set()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--camera", "door=rtsp://127.0.0.1:9/a", "--tell", "fal"], "did you mean `fall`"),
        (["--camera", "door=rtsp://127.0.0.1:9/a", "--tell", "queue"], "needs a zone or a line"),
        (["--camera", "door=nowhere.mp4", "--tell", "fall"], "no such file"),
        (["--camera", "door=rtsp://u:${NOBODY}@127.0.0.1/a", "--tell", "fall"], "NOBODY"),
        (
            ["--camera", "d=rtsp://127.0.0.1:9/a", "--camera", "d=rtsp://127.0.0.1:9/b", "--tell", "fall"],
            "two cameras are called d",
        ),
        (["--camera", "d=rtsp://127.0.0.1:9/a", "--tell", "fall", "--in", "e"], "--in e"),
        (["--camera", "d=rtsp://127.0.0.1:9/a", "--tell", "fall", "--between", "late"], "late is no time"),
        (["--camera", "d=rtsp://127.0.0.1:9/a", "--tell", "fall", "--time-zone", "Mars"], "Mars"),
        (["--camera", "d=rtsp://127.0.0.1:9/a", "--tell", "fall", "--webhook", "example.org"], "https://"),
    ],
)
def test_a_mistake_leaves_nothing_behind(empty: Path, words: list[str], why: str) -> None:
    result = init("a/b", *words, "--no-try")
    assert result.exit_code == 2, result.output
    assert why in result.output
    assert {path.name for path in empty.iterdir()} == set()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--time-zone", "Berlin"], "did you mean `Europe/Berlin`?"),
        (["--mail-to", "night", "--mail-server", "mail.example.org"], "night is no mail address"),
        (["--webhook", "example.org"], "--webhook: this is no address of a web server"),
        (
            ["--webhook", "https://quiet:p@hook.example/x"],
            "--webhook: expected https://HOST[:PORT]/PATH: write name",
        ),
        (["--webhook", "https://h:99999/quiet"], "--webhook: expected https://HOST[:PORT]/PATH with a port from 1 to"),
        (["--mqtt", "mqtt://h:99999"], "--mqtt: expected mqtt://HOST[:PORT] or mqtts://HOST[:PORT] with a port from 1"),
        (["--mail-to", "ä@b.de", "--mail-server", "m"], "--mail-to: expected an address such as ward@example.org"),
        (["--mail-to", "a@b.de", "--mail-server", "a..b"], "--mail-server: no host can have this name"),
        (["--mail-to", "a@b.de", "--mail-server", "m:0"], "--mail-server: there is no port 0: expected one from 1 to"),
        (["--mail-to", "a@b.de", "--mail-server", "m:99999"], "--mail-server: there is no port 99999"),
        (["--mail-to", "a@b.de", "--mail-server", "m", "--mail-user", "ü"], "--mail-user: `user` and `password`: only"),
        (["--in", "gate"], "--in gate: no camera has this name; there are entry"),
    ],
)
def test_a_mistake_is_told_before_a_camera_is_tried(empty: Path, words: list[str], why: str) -> None:
    camera = f"entry=rtsp://127.0.0.1:{free_port()}/a"
    result = init("night", "--camera", camera, "--tell", "fall", "--yes", *words)
    assert result.exit_code == 2, result.output
    assert why in result.output
    assert "quiet" not in result.output
    assert "No picture" not in result.output, "nobody is at this port, so a camera that is tried says so"


@pytest.fixture
def no_mqtt(monkeypatch: pytest.MonkeyPatch) -> None:
    lacks = wishes.lacks
    monkeypatch.setattr(wishes, "lacks", lambda *modules: "paho" in modules or lacks(*modules))


@pytest.mark.usefixtures("no_mqtt")
def test_no_broker_without_its_package(empty: Path) -> None:
    camera = f"entry=rtsp://127.0.0.1:{free_port()}/a"
    result = init("night", "--camera", camera, "--tell", "fall", "--yes", "--mqtt", "10.0.0.6")
    assert result.exit_code == 2, result.output
    assert "an MQTT broker needs: pip install 'camgraph[mqtt]'" in result.output
    assert "No picture" not in result.output


@pytest.mark.usefixtures("no_mqtt")
def test_a_broker_is_not_offered_without_its_package(capsys: pytest.CaptureFixture[str]) -> None:
    class Typed(Dialog):
        def ask(self, question: str, default: str = "", *, hidden: bool = False) -> str:
            return "1, 2"

    assert choose_ways(Typed(asks=True)) == ["mail", "webhook"]
    shown = capsys.readouterr().out
    assert "2  a web server" in shown
    assert "3  " not in shown
    assert "An MQTT broker needs pip install 'camgraph[mqtt]' before." in shown


def test_cameras_that_fail_say_why(empty: Path, simulated: Mapping[str, CameraHandle]) -> None:
    """A wrong password once, a wrong path, nobody there: each in words, and the files are written all the same."""
    main, other = simulated["main"], simulated["stream1"]
    words = [
        f"locked=rtsp://viewer:wrong@127.0.0.1:{main.port}/main",
        f"lost=rtsp://127.0.0.1:{other.port}/elsewhere",
        f"absent=rtsp://127.0.0.1:{free_port()}/a",
    ]
    before = connections(main)
    result = init("night", *(word for one in words for word in ("--camera", one)), "--tell", "fall", "--yes")
    assert result.exit_code == 1, result.output
    text = " ".join(result.output.split())
    assert "refuses this user or this password" in text
    assert "has no stream at this path" in text
    assert "No picture: Connection refused. There is a machine, and it takes no call" in text
    assert "has come from locked, lost, absent yet" in text
    assert text.index("has come from locked") < text.index("Next, type:"), "who types on first misses it"
    assert connections(main) == before + 1, "one wrong password is tried once"
    assert (empty / "night" / "graph.yaml").is_file()


def test_a_wrong_password_for_many_cameras_locks_no_account(empty: Path, simulated: Mapping[str, CameraHandle]) -> None:
    """A recorder has one account for all of its cameras: the same password is tried once, and no third one."""
    camera = simulated["main"]
    before = connections(camera)
    given = [f"c{number}={place_of(camera).replace('//', f'//viewer:{word}@')}" for number, word in enumerate("aabbcd")]
    result = init("night", *(word for one in given for word in ("--camera", one)), "--tell", "fall", "--yes")
    assert result.exit_code == 1, result.output
    assert "lock the account" in result.output
    assert connections(camera) == before + 2


def test_what_is_there_already_stays_without_force(empty: Path) -> None:
    words = ["--camera", "door=rtsp://127.0.0.1:9/a", "--tell", "fall", "--yes", "--no-try"]
    (empty / "night").mkdir()
    (empty / "night" / "rules.yaml").write_text("mine")
    (empty / "night" / ".gitignore").write_text("mine")
    result = init("night", *words)
    assert result.exit_code == 2
    assert "--force" in result.output
    assert contents(empty / "night") == {"rules.yaml": b"mine", ".gitignore": b"mine"}
    assert init("night", *words, "--force").exit_code == 0
    assert b"use: fall" in (empty / "night" / "rules.yaml").read_bytes()
    assert not (empty / "night" / "secrets.env").exists(), "there are none"
    assert (empty / "night" / ".gitignore").read_text().startswith("mine\nsecrets.env\n")


def test_all_files_are_replaced_or_none(empty: Path) -> None:
    words = ["--camera", "door=rtsp://u:quiet-door@127.0.0.1:9/a", "--tell", "fall", "--yes", "--no-try", "--force"]
    folder = empty / "night"
    (folder / "rules.yaml" / "kept").mkdir(parents=True)
    (folder / "graph.yaml").write_text("mine")
    result = init("night", *words)
    assert result.exit_code == 2
    assert "rules.yaml is a folder" in result.output
    assert contents(folder) == {"graph.yaml": b"mine"}
    assert (folder / "rules.yaml" / "kept").is_dir()


def test_nothing_is_pulled_without_a_word(empty: Path, cache: Path) -> None:
    result = init("night", "--camera", "door=rtsp://127.0.0.1:9/a", "--tell", "fall", "--yes", "--no-try")
    assert result.exit_code == 0, result.output
    assert "camgraph assets pull movenet-multipose.onnx" in result.output
    assert not cache.exists()


def test_all_ways_pass_the_check(empty: Path) -> None:
    words = ["--camera", "süd=rtsp://127.0.0.1:9/a?token=quiet-token", "--camera", "on=http://127.0.0.1:9/video.mjpg"]
    words += [
        "--tell",
        "pointing",
        "--tell",
        "somebody",
        "--in",
        "süd",
        "--between",
        "08:00-18:00",
        "--no-try",
        "--yes",
    ]
    words += ["--mail-to", "night@example.org", "--mail-server", "mail.example.org:465", "--mail-user", "ward"]
    words += ["--webhook", "https://10.0.0.5/quiet-token", "--mqtt", "10.0.0.6", "--mqtt-user", "ward"]
    words += ["--home-assistant"]
    (empty / "given.env").write_text("MAIL_PASSWORD=quiet-mail\nMQTT_PASSWORD=quiet-broker\n")
    result = init("night", *words, "--env-file", "given.env")
    assert result.exit_code == 0, result.output
    folder = empty / "night"
    secrets = read_env_file(folder / "secrets.env")
    assert set(secrets) == {"SUD_URL", "MAIL_PASSWORD", "WEBHOOK_URL", "MQTT_PASSWORD"}
    assert [name for name, data in contents(folder).items() if b"quiet" in data] == ["secrets.env"]
    graph = load_graph(folder / "graph.yaml", environ={**os.environ, **secrets}, strict=True)
    assert {"mail", "web", "house", "page", "footage", "log"} <= set(graph.file.stages)
    assert list(graph.cameras) == ["süd", "on"]


@pytest.mark.parametrize(
    ("url", "key"),
    [("/hooks/quiet0token0of00mattermost", "text"), ("/api/webhooks/1/quiet-token", "embeds")],
)
def test_a_chat_gets_one_alert_for_an_incident(empty: Path, url: str, key: str) -> None:
    """And none for its updates and its end."""
    with web_receiver() as server:
        words = ["--camera", "room-3=rtsp://127.0.0.1:9/a", "--tell", "fall", "--no-try", "--yes", "--no-page"]
        result = init("night", *words, "--webhook", server.url.replace("/hook", url))
        assert result.exit_code == 0, result.output
        secrets = read_env_file(empty / "night" / "secrets.env")
        plan = load_plan(empty / "night" / "graph.yaml", environ={**os.environ, **secrets})
        phases = ("start", "update", "update", "end")
        [web] = [stage for process in plan.processes for stage in process.stages if stage.name == "chat"]
        with delivering(SinkWebhook, dict(web.settings), empty) as stage:
            hand_in(stage, [incident("i1", phase, at_s=at, camera="room-3").event for at, phase in enumerate(phases)])
    [request] = server.requests
    assert "Fall on room-3" in json.dumps(json.loads(request.body)[key])


def test_an_address_of_telegram_without_its_parts_is_refused(empty: Path) -> None:
    words = ["--camera", "room-3=rtsp://127.0.0.1:9/a", "--tell", "fall", "--no-try", "--yes", "--no-page"]
    result = init("night", *words, "--webhook", "https://api.telegram.org/botquiet")
    assert result.exit_code == 2
    assert "expected a path that ends with /sendMessage" in result.output
    assert "quiet" not in result.output


# ---- on a terminal


class Terminal:
    """`camgraph init` on a terminal, with somebody who reads before they type."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.shown = ""
        self._read = 0
        self._terminal, theirs = pty.openpty()
        command = [sys.executable, "-c", ON_ITS_TERMINAL, "-m", "camgraph.tools.cli", "init", *words]
        environ = {**os.environ, "TERM": "vt100", "TZ": "UTC"}
        self.process = subprocess.Popen(
            command, cwd=folder, env=environ, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)

    def answer(self, question: str, text: str) -> None:
        """Wait for the question, and type."""
        self.wait_for(question)
        os.write(self._terminal, f"{text}\n".encode())

    def wait_for(self, text: str) -> None:
        def has_come() -> bool:
            self._take(0.05)
            return text in self.shown[self._read :]

        until(has_come, LIMIT_S, lambda: self.shown)
        self._read = self.shown.index(text, self._read) + len(text)

    def press(self, key: bytes) -> None:
        os.write(self._terminal, key)

    def end(self) -> int:
        """All that is still shown, and the exit status."""
        while self._take(LIMIT_S):
            pass
        os.close(self._terminal)
        return self.process.wait(LIMIT_S)

    def _take(self, within_s: float) -> bool:
        if not select.select([self._terminal], [], [], within_s)[0]:
            return False
        try:
            piece = os.read(self._terminal, 1 << 16)
        except OSError:  # its other end is closed
            return False
        self.shown += piece.decode()
        return bool(piece)


@contextmanager
def terminal(folder: Path, *words: str) -> Iterator[Terminal]:
    one = Terminal(folder, *words)
    try:
        yield one
    except BaseException:
        one.process.kill()
        one.process.wait()
        raise


def test_a_whole_talk_and_the_graph_runs(empty: Path, simulated: Mapping[str, CameraHandle], two_people: Path) -> None:
    locked, guessed = simulated["main"], simulated["stream1"]
    with terminal(empty, "night") as somebody:
        somebody.answer("Address", "10.0.0.")
        somebody.answer("Address", place_of(locked))
        somebody.answer("call it", "Room 3")
        somebody.answer("User", "viewer")
        somebody.answer("Password", "wrong-one")
        somebody.answer("User [viewer]", "")
        somebody.answer("Password", PASSWORD)
        somebody.answer("right camera?", "")
        somebody.answer("next camera", f"127.0.0.1:{guessed.port}")
        somebody.answer("call it", "hall")
        somebody.answer("right camera?", "y")
        somebody.answer("next camera", "")
        somebody.answer("A number", "1,somebody")
        somebody.answer("In which cameras", "")
        somebody.answer("When?", "at night")
        somebody.answer("Your time zone", "Europe/Berlin")
        somebody.answer("elsewhere", "")
        assert somebody.end() == 0, somebody.shown
    assert "wrong-one" not in somebody.shown
    assert "quiet" not in somebody.shown
    folder = empty / "night"
    assert {"graph.yaml", "rules.yaml", "secrets.env", "Room-3.jpg", "hall.jpg"} <= set(contents(folder))
    graph, rules = (folder / "graph.yaml").read_text(), (folder / "rules.yaml").read_text()
    assert "viewer:${ROOM_3_PASSWORD}@" in graph
    assert f"rtsp://127.0.0.1:{guessed.port}/stream1" in graph, "of a host alone, the usual paths are tried"
    assert "10 minutes behind" in somebody.shown
    assert 'time_zone: "Europe/Berlin"' in rules
    assert re.findall(r"use: (\w+).*during: night", rules) == ["fall", "somebody"]
    (folder / "graph.yaml").write_text(
        graph.replace("asset:movenet-multipose.onnx", str(two_people))
        .replace("  page:    {use: serve, from: events}\n", "")
        .replace("version: 1", "version: 1\nprocesses: one")
    )
    (folder / "rules.yaml").write_text(rules.replace(", during: night", "").replace("for: 1s, ", ""))
    assert run_until_event(folder)["data"]["action"] == "somebody"


def run_until_event(folder: Path) -> dict[str, dict[str, str]]:
    """The first incident of a run of the graph, as somebody would start it."""
    words = ["run", "graph.yaml", "--env-file", "secrets.env", "--quiet"]
    log = folder / "log"
    with log.open("wb") as out:
        run = subprocess.Popen([sys.executable, "-m", "camgraph.tools.cli", *words], cwd=folder, stdout=out, stderr=out)
    try:
        incident = until(lambda: _first_incident(folder / "events.jsonl"), LIMIT_S, log.read_text, every_s=0.1)
    finally:
        run.send_signal(signal.SIGINT)
        run.wait(LIMIT_S)
    assert PASSWORD.strip() not in log.read_text()
    return incident


def _first_incident(file: Path) -> dict[str, dict[str, str]] | None:
    lines = file.read_text().splitlines() if file.is_file() else []
    events = (json.loads(line) for line in lines)
    return next((event for event in events if event["type"] == "camgraph.incident.start"), None)


def test_a_wrong_answer_is_asked_for_again(empty: Path) -> None:
    """With what was typed before: the check at the end would have lost all of it."""
    cv2.imwrite(str(empty / "ward.png"), np.full((96, 160, 3), 120, np.uint8))
    words = ["--camera", "ward=ward.png", "--tell", "somebody", "--between", "always", "--no-try", "--no-page"]
    with terminal(empty, "night", *words) as somebody:
        somebody.answer("elsewhere", "1,2,3")
        somebody.answer("who is to be told", "ä@b.de")
        somebody.wait_for("expected an address such as ward@example.org")
        somebody.answer("who is to be told", "a@b.de")
        somebody.answer("address of yours", "")
        somebody.answer("mail server", "mail.x.de:99999")
        somebody.wait_for("there is no port 99999")
        somebody.answer("mail server", "mail.x.de")
        somebody.answer("User name there", "ü")
        somebody.wait_for("only ASCII letters")
        somebody.answer("User name there", "ward")
        somebody.answer("Password", "quiet-ü")
        somebody.wait_for("only ASCII letters")
        somebody.answer("Password", "quiet-mail")
        somebody.answer("web server", "https://u:p@hook.example/x")
        somebody.wait_for("write name and password as")
        somebody.answer("web server", "https://hook.example/x")
        somebody.wait_for("What listens at this address?")
        somebody.answer("A number", "2")
        somebody.wait_for("expected a path that ends with /sendMessage")
        somebody.answer("A number", "3")
        somebody.answer("broker", "mqtt://h:99999")
        somebody.wait_for("with a port from 1 to 65535")
        somebody.answer("broker", "mqtt://h")
        somebody.answer("User name there", "")
        somebody.answer("Home Assistant", "y")
        somebody.answer("Send a test", "n")
        assert somebody.end() == 0, somebody.shown
    assert "quiet" not in somebody.shown
    graph = (empty / "night" / "graph.yaml").read_text()
    assert "mail.x.de" in graph
    assert 'with: {chat: slack, url: "${secret:WEBHOOK_URL}"' in graph
    assert "home_assistant: true, snapshots: true" in graph


def test_a_mistake_at_the_end_names_the_users_folder(tmp_path: Path) -> None:
    staged, folder = tmp_path / ".camgraph-init-x", tmp_path / "night"
    staged.mkdir()
    (staged / "graph.yaml").write_text("version: 1\ncamera: {}\n")
    with pytest.raises(GraphError) as caught:
        _require_correct(staged, folder)
    assert f"{folder}/graph.yaml:" in str(caught.value)
    assert str(staged) not in str(caught.value)


def test_ctrl_c_leaves_nothing(empty: Path) -> None:
    picture = empty / "ward.png"
    cv2.imwrite(str(picture), np.full((96, 160, 3), 120, np.uint8))
    with terminal(empty, "a/night") as somebody:
        somebody.answer("Address", "ward.png")
        somebody.answer("call it", "hall")
        somebody.wait_for("right camera?")
        assert (empty / "a" / "night" / "hall.jpg").is_file()
        somebody.press(b"\x03")
        assert somebody.end() == 130, somebody.shown
    assert "nothing was written" in somebody.shown
    assert list(empty.iterdir()) == [picture]


def test_ctrl_c_ends_a_trial(empty: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, terminal(empty, "night") as somebody:
        somebody.answer("Address", f"rtsp://127.0.0.1:{silent.getsockname()[1]}/main")
        somebody.answer("call it", "hall")
        somebody.wait_for("Trying hall")
        somebody.press(b"\x03")
        assert somebody.end() == 130, somebody.shown
    assert "nothing was written" in somebody.shown
    assert list(empty.iterdir()) == []


def test_no_third_password_is_tried(empty: Path, simulated: Mapping[str, CameraHandle]) -> None:
    camera = simulated["main"]
    before = connections(camera)
    with terminal(empty, "night") as somebody:
        somebody.answer("Address", place_of(camera).replace("//", "//viewer@"))
        somebody.answer("call it", "door")
        somebody.wait_for("It wants a user and a password")
        for wrong in ("one", "two"):
            somebody.answer("User", "")
            somebody.answer("Password", wrong)
        somebody.wait_for("lock the account")
        somebody.answer("what now", "-")
        somebody.wait_for("Address")
        somebody.press(b"\x03")
        assert somebody.end() == 130
    assert connections(camera) == before + 3, "without a password, and twice with one"


def test_a_hostile_camera_moves_no_cursor(empty: Path) -> None:
    """It answers everything with sequences for terminals."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)

        def answer() -> None:
            while not over.is_set():
                with suppress(OSError), server.accept()[0] as client:
                    client.settimeout(5)
                    client.recv(1000)
                    client.sendall(b"RTSP/1.0 599 \x1b[31mred\x07\r\nServer: \x1b[2J\r\nCSeq: 1\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            address = f"rtsp://127.0.0.1:{server.getsockname()[1]}/a"
            result = init("night", "--camera", f"door={address}", "--tell", "fall", "--yes")
        finally:
            over.set()
            thread.join()
    assert result.exit_code == 1
    assert "No picture" in result.output
    assert all(letter.isprintable() or letter == "\n" for letter in result.output), ascii(result.output)
