"""Secrets of a graph with every sink that has one are looked for in all that a run leaves; the other sides echo them.

`tests/test_planted_service_secrets.py` does the same with the service, traces, and cameras that are added.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
import zmq
from camgraph_test_stages.brokers import free_port
from camgraph_test_stages.planted import (
    WORDS,
    Planted,
    Reply,
    as_camera,
    decoded,
    descendants,
    one_line,
    parrot,
    told_by_the_system,
    word,
)
from camgraph_test_stages.waiting import json_lines, until
from click.testing import CliRunner

from camgraph.pipeline.system import redaction
from camgraph.tools.cli import main

pytestmark = pytest.mark.cold  # /proc/PID/environ is looked at


@pytest.mark.parametrize("head", ["", "u", "us", "use"])
def test_the_search_finds_every_form(head: str) -> None:
    planted = Planted()
    planted.plant("a")
    value = planted.values["a"]
    encoded = base64.b64encode(f"{head}:{value}".encode())
    for text in (value.encode(), value[3:].encode(), encoded, encoded[:-6], value.encode().hex().encode()):
        assert planted.found_in(b"... " + text + b" ...") == {"a"}
    assert planted.found_in(b"***") == set()


# ---- other sides that repeat what they are told


def as_web_server(told: bytes) -> bytes:
    """Refuses the event, with the part of the request that is secret."""
    if b"\r\n\r\n" not in told:
        return b""
    path, lines = told.split(b" ")[1], told.partition(b"\r\n\r\n")[0].split(b"\r\n")
    lines = [line for line in lines if line.lower().startswith((b"authorization", b"x-api-key"))]
    text = one_line(b" ".join([path, *lines, *decoded(b" ".join(lines))]))
    return b"HTTP/1.1 400 No\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text)


def as_mail_server(told: bytes) -> bytes:
    if told.upper().startswith((b"EHLO", b"HELO")):
        return b"250-here\r\n250 AUTH PLAIN LOGIN\r\n"
    return b"535 5.7.8 " + one_line(told) + b" " + b" ".join(decoded(told)) + b"\r\n"


def as_redis(told: bytes) -> bytes:
    return b"-ERR unknown: " + one_line(told) + b"\r\n" * told.count(b"*")


def as_nats(told: bytes) -> bytes:
    return b"-ERR '" + one_line(told) + b"'\r\n"


def as_mqtt(told: bytes) -> bytes:
    """CONNACK with a reason."""
    reason = one_line(told)[-120:].decode("ascii", "replace").replace("\0", " ").encode()[:100]
    properties = b"\x1f" + len(reason).to_bytes(2, "big") + reason
    rest = bytes([0, 0x87, len(properties)]) + properties
    return bytes([0x20, len(rest)]) + rest


# ---- the run

TELL_TALE = """\
#!/bin/sh
echo "I was told: $SIREN_TOKEN"
exit 1
"""


def sinks_of(planted: Planted, ports: Mapping[str, int], pem: Path) -> dict[str, Any]:
    """Every sink that knows a secret. All of their other sides refuse, and repeat what they were told if they can."""
    at = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    nobody, mine = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    raw, curve = secrets.token_bytes(32), zmq.curve_keypair()[1].decode()
    signing = base64.b64encode(raw).decode()
    planted.look_for("signing", raw.hex())
    keys = {
        "signing_secrets": planted.plant_value("signing", f"whsec_{signing}", signing[:16], signing[20:36]),
        "curve_secret_key": planted.plant_value("curve", curve, curve[:20], curve[20:]),
    }
    tls = {"tls": {"certificate": str(pem)}}

    def web(address: str, path: str = "", **more: Any) -> dict[str, Any]:
        return {"url": f"http://{address}/{path}", "allow_private": True, **more}

    def login(name: str) -> dict[str, Any]:
        return {"username": "ward", "password": planted.plant(name)}

    def token(name: str) -> dict[str, Any]:
        return {"bearer_token": planted.plant(name)}

    mail = {"server": "127.0.0.1", "port": ports["mail"], "security": "none", "sender": "a@b.example"}
    mail |= {"to": "c@d.example", "user": "ward", "password": planted.plant("mail"), "only": {"kind": "camera"}}
    path, absent_path = planted.plant("path", ":/"), planted.plant("absent_path", ":/")
    signed = {"signing_secrets": keys["signing_secrets"], **login("basic")}
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "signed": ("sink_webhook", web(at["web"], path, **signed)),
        "bearer": ("sink_webhook", web(at["web"], headers={"X-Api-Key": planted.plant("header")}, **token("bearer"))),
        "absent": ("sink_webhook", web(nobody, absent_path, **token("absent"))),
        "mail": ("sink_email", mail),
        "mqtt": ("sink_mqtt", {"address": f"mqtt://{at['mqtt']}", **login("login")}),
        "redis": ("sink_redis", {"address": f"redis://{at['redis']}", "password": planted.plant("redis")}),
        "nats": ("sink_nats", {"address": f"nats://{at['nats']}", **login("nats")}),
        "amqp": ("sink_amqp", {"address": f"amqp://{nobody}", "queue": "q", **login("amqp")}),
        "kafka": ("sink_kafka", {"address": f"kafka://{nobody}", "topic": "t", **login("kafka")}),
        "socket": ("sink_socket", {"address": f"tcp://{at['web']}", **tls}),
        "syslog": ("sink_syslog", {"address": f"tls://{at['web']}", **tls}),
        "zmq": ("sink_zmq", {"address": f"tcp://{mine}", "curve_secret_key": keys["curve_secret_key"]}),
        "log": ("sink_jsonl", {"path": "events.jsonl"}),
        "siren": ("sink_command", {"command": ["./siren.sh"], "tries": 1, "pass_environment": ["SIREN_TOKEN"]}),
    }
    return {name: {"use": use, "from": "events", "with": settings} for name, (use, settings) in kinds.items()}


def graph_of(planted: Planted, ports: Mapping[str, int], pem: Path, name: str) -> dict[str, Any]:
    url = f"rtsp://viewer:{planted.plant('camera')}@127.0.0.1:{ports['camera']}/main?token={planted.plant('query')}"
    return {
        "version": 1,
        "name": name,
        "cameras": {"door": {"url": url}},
        "stages": {
            "capture": {"use": "capture"},
            "each": {"use": "every_frame", "from": "capture"},
            **sinks_of(planted, ports, pem),
        },
    }


OTHER_SIDES: Mapping[str, tuple[Reply, bytes]] = {
    "web": (as_web_server, b""),
    "camera": (as_camera, b""),
    "mail": (as_mail_server, b"220 here\r\n"),
    "redis": (as_redis, b""),
    "nats": (as_nats, b'INFO {"server_id":"x","version":"2.9.0","max_payload":1048576,"auth_required":true}\r\n'),
    "mqtt": (as_mqtt, b""),
}
GIVEN_UP = ("signed", "bearer", "siren")
"""Sinks whose other sides refuse the event itself."""
ECHOED = {"path", "bearer", "header", "basic", "mail", "redis", "nats", "login", "camera", "query"}
BLOCKED = ("absent", "mail", "mqtt", "redis", "nats", "amqp", "kafka", "socket", "syslog")


class Setting:
    """A folder with a graph, and beside it another one with the secrets, where nobody looks for them."""

    def __init__(self, folder: Path, ports: Mapping[str, int]) -> None:
        self.planted, self.name = Planted(), f"planted{os.getpid()}"
        self.kept, self.folder = folder / "kept", folder / "run"
        for one in (self.kept, self.folder):
            one.mkdir()
        pem = self._certificate()
        self.graph = self.folder / "graph.json"
        self.graph.write_text(json.dumps(graph_of(self.planted, ports, pem, self.name)))
        program = self.folder / "siren.sh"
        program.write_text(TELL_TALE)
        program.chmod(0o755)
        for name, value in self.planted.values.items():
            (self.kept / name).write_text(value)
            (self.kept / name).chmod(0o600)
        self.environ = {
            "CREDENTIALS_DIRECTORY": str(self.kept),
            "CAMGRAPH_STATE_DIR": str(self.folder / "state"),
            "SIREN_TOKEN": word(),
        }
        self.planted.look_for("siren", self.environ["SIREN_TOKEN"])

    def _certificate(self) -> Path:
        pem = self.kept / "client.pem"
        issued = trustme.CA().issue_cert("client.test")
        issued.private_key_and_cert_chain_pem.write_to_path(pem)
        key = issued.private_key_pem.bytes().decode().splitlines()
        self.planted.look_for("key of tls", *(line for line in key if not line.startswith("-") and len(line) > WORDS))
        return pem

    @property
    def log(self) -> bytes:
        return (self.folder / "log").read_bytes()

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "camgraph.tools.cli", "run", str(self.graph), "--json-logs"]
        environ = {**os.environ, **self.environ}
        with (self.folder / "log").open("wb") as log:
            run = subprocess.Popen(command, cwd=self.folder, env=environ, stdout=log, stderr=log)
        children = []
        try:
            yield run
            children = descendants(run.pid)
        finally:
            run.kill()
            run.wait()
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), every_s=0.02)

    def has_tried_all(self) -> bool:
        blocked = {line.get("stage") for line in json_lines(self.log) if line["event"] == "stage_blocked"}
        letters = self.folder / "state" / self.name / "dead_letters"
        return blocked >= {*BLOCKED} and all((letters / f"{sink}.jsonl").exists() for sink in GIVEN_UP)


def answers_of(setting: Setting) -> Iterator[tuple[str, bytes]]:
    """What the commands say; those that do not read the graph come first, for they know no secret to hide."""
    named, graph = ["--name", setting.name], str(setting.graph)
    [first, *_] = json_lines(setting.folder / "events.jsonl")
    for words in (
        ["status", *named],
        ["status", *named, "--json"],
        ["cameras", "list", *named],
        ["outbox", "status", *named, "--json"],
        ["outbox", "list", *named],
        ["outbox", "list", *named, "--dead", "--json"],
        ["outbox", "show", *named, first["id"]],
        ["check", graph],
        ["graph", graph],
        ["sinks", "test", graph, "signed", "mail", "redis", "--within", "1"],
    ):
        answer = CliRunner().invoke(main, words)
        assert answer.exit_code == (words[0] == "sinks"), answer.output
        yield f"camgraph {' '.join(words)}", answer.output.encode()


def places(setting: Setting, run: int) -> Iterator[tuple[str, bytes]]:
    """Everything that a run leaves and that is said of it."""
    yield from told_by_the_system(run)
    yield from answers_of(setting)
    for file in sorted(setting.folder.rglob("*")):
        if file.is_file():
            yield str(file), file.read_bytes()
    for file in Path("/dev/shm").glob(f"*{setting.name}*"):
        yield str(file), file.read_bytes()


def test_no_planted_secret_is_found_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setattr(redaction, "_any_known", None)
    with ExitStack() as stack:
        sides = {name: stack.enter_context(parrot(*side)) for name, side in OTHER_SIDES.items()}
        setting = Setting(tmp_path, {name: port for name, (port, _) in sides.items()})
        for name, value in setting.environ.items():
            monkeypatch.setenv(name, value)
        run = stack.enter_context(setting.running())
        until(setting.has_tried_all, every_s=0.1, why=lambda: setting.log)
        looked_at = dict(places(setting, run.pid))
        told = b"".join(b"".join([*one, *decoded(b" ".join(one))]) for _, one in sides.values())
    looked_at["log"] = setting.log
    disclosed = {place: found for place, data in looked_at.items() if (found := setting.planted.found_in(data))}
    assert disclosed == {}
    assert setting.planted.found_in(told) >= ECHOED
    assert sum(place.startswith("environ") for place in looked_at) > len(BLOCKED)
    assert sum("dead_letters" in place for place in looked_at) >= len(GIVEN_UP)
    assert b'"door"' in looked_at[str(setting.folder / "events.jsonl")]
