from __future__ import annotations

import base64
import json
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import trustme
from camgraph_test_stages.delivering import delivering, hand_in, letters, refusal, refused_for_now
from camgraph_test_stages.incident_views import event
from camgraph_test_stages.waiting import until
from camgraph_test_stages.web_receiver import Reply, Request, WebReceiver, web_receiver
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from standardwebhooks import Webhook, WebhookVerificationError
from structlog.testing import capture_logs

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.messages import Event
from camgraph.pipeline.monitoring.run_status import as_json
from camgraph.pipeline.testing import run_graph
from camgraph.stages.sinks.sink_webhook import SinkWebhook, SinkWebhookSettings

OLD, NEW = (f"whsec_{base64.b64encode(letter * 32).decode()}" for letter in (b"o", b"n"))
TOKEN = "planted-s3cret-token"


def events(*numbers: int) -> list[Event]:
    return [event(number) for number in numbers]


@contextmanager
def sink_to(url: str, folder: Path, **more: Any) -> Iterator[SinkWebhook]:
    with delivering(SinkWebhook, {"url": url, "allow_private": True, **more}, folder) as sink:
        yield sink


def sent_ids(receiver: WebReceiver) -> list[str]:
    return [request.headers["webhook-id"] for request in receiver.requests]


# ---- what a request is


def test_events_arrive_in_order_over_one_connection(tmp_path) -> None:
    with web_receiver() as receiver, sink_to(receiver.url, tmp_path) as sink:
        hand_in(sink, events(1, 2))
        hand_in(sink, events(3))
        assert [json.loads(request.body) for request in receiver.requests] == [
            json.loads(event(n).body) for n in (1, 2, 3)
        ]
        assert sent_ids(receiver) == [event(n).id for n in (1, 2, 3)]
        assert receiver.connections == 1
        assert receiver.requests[0].path == "/hook"
        assert sink.context.counts == {("written", "cam"): 3}


@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_the_sdk_of_cloudevents_reads_both_modes(tmp_path, mode) -> None:
    odd = event(1, camera='Tür "3" 50 %')
    with web_receiver() as receiver, sink_to(receiver.url, tmp_path, mode=mode) as sink:
        hand_in(sink, [odd])
        [request] = receiver.requests
    read = from_http_event(HTTPMessage(dict(request.headers), request.body))
    body = json.loads(odd.body)
    assert read.get_data() == body["data"]
    assert (read.get_id(), read.get_type(), read.get_source()) == (body["id"], body["type"], body["source"])
    assert read.get_subject() == 'Tür "3" 50 %'
    assert read.get_time().isoformat() == "2026-11-23T12:00:01+00:00"
    assert ("ce-id" in request.headers) == ("specversion" not in json.loads(request.body)) == (mode == "binary")


def test_a_batch_is_one_request_and_never_too_large(tmp_path) -> None:
    with web_receiver() as receiver, sink_to(receiver.url, tmp_path, mode="batched", most_bytes=1000) as sink:
        hand_in(sink, events(*range(5)))
        batches = [json.loads(request.body) for request in receiver.requests]
        assert [one["id"] for batch in batches for one in batch] == [event(n).id for n in range(5)]
        assert 1 < len(batches) < 5
        assert max(len(request.body) for request in receiver.requests) <= 1000
        assert {request.headers["content-type"] for request in receiver.requests} == {
            "application/cloudevents-batch+json"
        }


def test_the_one_event_of_a_batch_that_is_refused_is_found(tmp_path) -> None:
    def reply(request: Request) -> Reply:
        return Reply(400 if event(2).id in request.body.decode() else 200)

    with web_receiver() as receiver, sink_to(receiver.url, tmp_path, mode="batched") as sink:
        receiver.reply = reply
        hand_in(sink, events(*range(5)))
        assert list(letters(sink)) == [event(2).id]
        taken = [json.loads(request.body) for request in receiver.requests if event(2).id not in request.body.decode()]
        assert [one["id"] for batch in taken for one in batch] == [event(n).id for n in (0, 1, 3, 4)]
        assert sink._alone == set()  # nothing outside tells that the ids do not pile up


def test_an_object_that_is_no_cloudevent_is_sent_as_it_is(tmp_path) -> None:
    plain = Event(event(1).stamp, "x1", "", "single", b'{"id": "x1", "n": 5}')
    with web_receiver() as receiver, sink_to(receiver.url, tmp_path, mode="binary") as sink:
        hand_in(sink, [plain])
        [request] = receiver.requests
        assert (request.body, request.headers["content-type"]) == (plain.body, "application/json")


# ---- signatures


def test_each_secret_signs_and_every_attempt_is_signed_anew(tmp_path) -> None:
    with web_receiver() as receiver, sink_to(receiver.url, tmp_path, signing_secrets=[OLD, NEW]) as sink:
        receiver.replies = [Reply(500)]
        hand_in(sink, events(1))
        first, second = receiver.requests
        for secret in (OLD, NEW):
            for request in (first, second):
                assert Webhook(secret).verify(request.body, dict(request.headers))["id"] == event(1).id
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        stranger = Webhook(f"whsec_{base64.b64encode(b'x' * 32).decode()}")
        with pytest.raises(WebhookVerificationError):
            stranger.verify(first.body, dict(first.headers))
        with pytest.raises(WebhookVerificationError):
            Webhook(OLD).verify(first.body + b" ", dict(first.headers))


# ---- answers


@pytest.mark.parametrize("mode", ["structured", "batched"])
def test_an_event_that_always_breaks_the_server_is_given_up(tmp_path, mode) -> None:
    def reply(request: Request) -> Reply:
        return Reply(500 if event(2).id in request.body.decode() else 200)

    with web_receiver() as receiver, sink_to(receiver.url, tmp_path, mode=mode, give_up_after="0.1s") as sink:
        receiver.reply = reply
        reasons = hand_in(sink, events(1, 2, 3))
        assert list(letters(sink)) == [event(2).id]
        assert "for 0.1s, it fails (it answers 500)" in letters(sink)[event(2).id]
        assert reasons
        assert sink.context.counts["written", "cam"] == 2


def test_no_event_is_given_up_for_a_server_that_is_overloaded(tmp_path) -> None:
    with web_receiver() as receiver, sink_to(receiver.url, tmp_path, give_up_after="0.1s") as sink:
        receiver.replies = [Reply(status) for status in (502, 503, 504)] * 5
        assert len(hand_in(sink, events(1))) >= 15
        assert letters(sink) == {}


@pytest.mark.parametrize("status", [408, 425, 500, 502, 503, 302, 401, 403, 404])
def test_while_the_server_is_not_right_events_wait_in_order(tmp_path, status) -> None:
    with web_receiver() as receiver, sink_to(receiver.url, tmp_path) as sink:
        receiver.replies = [Reply(status, {"Location": "/elsewhere"})] * 2
        refused = hand_in(sink, events(1, 2))
        assert len(refused) == 2
        assert str(status) in refused[0]
        assert refused[0].startswith(f"http://127.0.0.1:{receiver.port}: ")
        assert sent_ids(receiver) == [event(n).id for n in (1, 1, 1, 2)]
        assert {request.path for request in receiver.requests} == {"/hook"}
        assert letters(sink) == {}


def test_a_refused_event_is_a_dead_letter_and_blocks_no_other(tmp_path) -> None:
    with web_receiver() as receiver, sink_to(receiver.url, tmp_path) as sink:
        receiver.replies = [Reply(), Reply(422, body=b"no such\ncamera")]
        assert hand_in(sink, events(1, 2, 3)) == []
        [(buried, why)] = letters(sink).items()
        assert buried == event(2).id
        assert why == f"http://127.0.0.1:{receiver.port}: it does not take this event: it answers 422: no such camera"
        assert sent_ids(receiver) == [event(n).id for n in (1, 2, 3)]


def test_the_pause_that_the_server_asks_for_is_kept(tmp_path) -> None:
    with web_receiver() as receiver, sink_to(receiver.url, tmp_path) as sink:
        receiver.replies = [Reply(429, {"Retry-After": "1800"})]
        assert "it gets too many requests" in refusal(sink, events(1))
        assert re.search(r"next try in (1[0-7]\d\d|1800) s", refusal(sink, events(1)))
        assert len(receiver.requests) == 1


def test_a_server_that_wants_no_more_gets_no_more_in_this_run(tmp_path) -> None:
    with web_receiver() as receiver:
        receiver.replies = [Reply(410)]
        for _ in range(2):  # the second time as a process that was started again
            with sink_to(receiver.url, tmp_path) as sink:
                for _ in range(2):
                    why = refusal(sink, events(1))
                assert "it wants no more events (it answers 410): nothing more is sent there in this run" in why
                assert letters(sink) == {}
        assert len(receiver.requests) == 1
        with sink_to(receiver.url + "/other", tmp_path) as sink:
            assert hand_in(sink, events(1)) == []


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("reset", "Connection reset"),
        ("close", "it closed the connection without an answer"),
        ("garbage", "its answer is no valid HTTP"),
    ],
)
def test_a_server_that_fails_costs_no_event(tmp_path, fault, text) -> None:
    with web_receiver() as receiver, sink_to(receiver.url, tmp_path) as sink:
        receiver.replies = [Reply(fault=fault)]
        [why] = hand_in(sink, events(1, 2))
        assert text in why
        assert sent_ids(receiver) == [event(n).id for n in (1, 1, 2)]


def test_endless_headers_and_long_answers_do_no_harm(tmp_path) -> None:
    with web_receiver() as receiver, sink_to(receiver.url, tmp_path) as sink:
        endless = b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5000 + b"\r\n"
        receiver.replies = [Reply(fault="garbage", body=endless), Reply(200, body=b"x" * 1_000_000)]
        [why] = hand_in(sink, events(1, 2))
        assert "no valid HTTP" in why
        assert sink.context.counts == {("written", "cam"): 2}


def test_a_drop_now_and_then_does_not_prolong_the_limit(tmp_path) -> None:
    """Each byte comes in time, but the answer never ends."""
    with web_receiver() as receiver, sink_to(receiver.url, tmp_path, limit="1.5s") as sink:
        receiver.replies = [Reply(fault="trickle")]
        began = time.monotonic()
        called = [began]

        def why_refused() -> str:
            called.append(time.monotonic())
            return refused_for_now(sink, events(1))

        assert "no answer within 1.5 s" in until(why_refused)
        assert time.monotonic() - began < 40
        assert len(called) > 2
        assert max(after - before for before, after in pairwise(called)) < 5, (
            "the process must listen between two calls"
        )
        hand_in(sink, events(1))
        assert len(receiver.requests) == 2
        until(lambda: not [one for one in threading.enumerate() if one.name == "http"])


def test_a_slow_server_gets_each_event_once(tmp_path) -> None:
    release = threading.Event()

    def slow(_: Request) -> Reply:
        release.wait(60)
        return Reply()

    with web_receiver() as receiver, sink_to(receiver.url, tmp_path) as sink:
        receiver.reply = slow
        for _ in range(2):
            with pytest.raises(Unavailable) as waits:
                sink.process(events(1, 2))
            assert waits.value.patient
        release.set()
        hand_in(sink, events(1, 2))
        assert sent_ids(receiver) == [event(n).id for n in (1, 2)]


def test_a_kept_connection_that_was_closed_is_no_failure(tmp_path) -> None:
    with web_receiver() as receiver, sink_to(receiver.url, tmp_path) as sink:
        receiver.replies = [Reply(then_close=True)] * 3
        assert [why for n in range(4) for why in hand_in(sink, events(n))] == []
        assert receiver.connections == 4


# ---- size


def test_a_large_event_goes_without_keypoints_and_says_so(tmp_path) -> None:
    people = [{"track_id": n, "bbox": [0.0, 0.0, 1.0, 1.0], "score": 0.9, "keypoints": [1.25] * 51} for n in range(100)]
    with web_receiver() as receiver, sink_to(receiver.url, tmp_path) as sink:
        hand_in(sink, [event(1, people=people), event(2, people=people[:1]), event(3, people=people * 10)])
        large, small, huge = (json.loads(request.body)["data"] for request in receiver.requests)
        assert large["left_out"] == ["keypoints"]
        assert [one["track_id"] for one in large["people"]] == list(range(100))
        assert {len(one["keypoints"]) for one in large["people"]} == {0}
        assert "left_out" not in small
        assert len(small["people"][0]["keypoints"]) == 51
        assert (huge["people"], huge["left_out"]) == ([], ["keypoints", "people"])
        assert max(len(request.body) for request in receiver.requests) <= 20_000


# ---- bodies for services


def test_values_cannot_break_out_of_a_body(tmp_path) -> None:
    camera = 'a", "admin": true, "x": "\n{why}'
    body = {"text": "{action} on {camera}", "chat_id": -100, "blocks": [{"text": "{severity}"}, True, None]}
    with web_receiver() as receiver, sink_to(receiver.url, tmp_path, body=body) as sink:
        hand_in(sink, [event(1, camera=camera)])
        [request] = receiver.requests
        assert json.loads(request.body) == {
            "text": f"fall on {camera}",
            "chat_id": -100,
            "blocks": [{"text": "warning"}, True, None],
        }
        assert request.headers["content-type"] == "application/json"


def test_a_form_and_a_text(tmp_path) -> None:
    with web_receiver() as receiver:
        with sink_to(receiver.url, tmp_path, form={"To": "+49 1", "Body": "{action} & {camera}"}) as sink:
            hand_in(sink, [event(1, camera="a=b")])
        with sink_to(receiver.url, tmp_path, body="{time} {action}", time_zone="Europe/Berlin") as sink:
            hand_in(sink, events(1))
        form, text = receiver.requests
        assert parse_qs(form.body.decode()) == {"To": ["+49 1"], "Body": ["fall & a=b"]}
        assert (text.body, text.headers["content-type"]) == (b"13:00:01 fall", "text/plain; charset=utf-8")


# ---- who is connected to


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1", "[::ffff:127.0.0.1]"]
)
def test_private_addresses_are_refused_before_the_run(tmp_path, host) -> None:
    url = f"https://{host}/hook"
    [(path, why)] = SinkWebhook.check(SinkWebhookSettings(url=url), tmp_path)
    assert path == ("url",)
    assert "write `allow_private: true` beside it" in why
    assert list(SinkWebhook.check(SinkWebhookSettings(url=url, allow_private=True), tmp_path)) == []


def test_no_connection_to_a_name_with_a_private_address(tmp_path, monkeypatch) -> None:
    """Also if the name led to a public address a moment ago: it is looked up once, and that address is used."""
    asked: list[str] = []

    def lookup(host: str, port: int, **_: object) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    with web_receiver() as receiver:
        monkeypatch.setattr(socket, "getaddrinfo", lookup)
        url = f"http://rebind.test:{receiver.port}/hook"
        with sink_to(url, tmp_path, allow_private=False) as sink:
            why = refusal(sink, events(1))
        assert "127.0.0.1 is an address of this machine: if you mean that, write `allow_private: true`" in why
        assert asked == ["rebind.test"]
        assert receiver.connections == 0


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def serving(authority: trustme.CA, *, ask: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("hook.test").configure_cert(context)
    if ask:
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def test_tls_with_an_authority_and_a_certificate_of_our_own(tmp_path, authority) -> None:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("client.test").private_key_and_cert_chain_pem.write_to_path(tmp_path / "client.pem")
    tls = {"ca": "ca.pem", "certificate": "client.pem", "server_name": "hook.test"}
    with web_receiver(tls=serving(authority, ask=True)) as receiver:
        with sink_to(receiver.url, tmp_path, tls=tls) as sink:
            hand_in(sink, events(1, 2))
            assert sent_ids(receiver) == [event(1).id, event(2).id]
            assert receiver.connections == 1


@pytest.mark.parametrize(
    ("tls", "text"),
    [
        (None, "name the file of that as `ca` of `tls`"),
        ({"ca": "ca.pem"}, "write it as `server_name` of `tls`"),
        ({"ca": "gone.pem"}, "`ca` of `tls`: .*gone.pem: cannot be read"),
    ],
)
def test_events_wait_while_the_server_is_not_trusted(tmp_path, authority, tls, text) -> None:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with web_receiver(tls=serving(authority)) as receiver:
        with sink_to(receiver.url, tmp_path, **({"tls": tls} if tls else {})) as sink:
            with pytest.raises(Unavailable, match=text):
                sink.process(events(1))
        assert receiver.requests == []


# ---- settings


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"url": "https://u:s3cret@a.test/"}, "as `username` and `password`"),
        ({"url": f"https://{'a' * 70}.test/s3cret"}, "HOST can be no name of a host"),
        ({"url": "https://a..test/s3cret"}, "HOST can be no name of a host"),
        ({"signing_secrets": "s3cret"}, "expected whsec_ and then"),
        ({"signing_secrets": "whsec_s3cret!"}, "this is none"),
        ({"signing_secrets": ["whsec_c2VjcmV0"]}, "got 6 bytes"),
        ({"bearer_token": "s3cret\r\nX: y"}, "printable ASCII"),
        ({"headers": {"X-Key": "s3cret\n"}}, "printable ASCII"),
        ({"headers": {"X Key": "s3cret"}}, "no header can be called 'X Key'"),
        ({"headers": {"Webhook-Id": "1"}}, "is set by camgraph"),
        ({"headers": {"Content-Length": "1"}}, "is set by camgraph"),
        ({"username": "u"}, "go together"),
        ({"username": "u", "password": "p", "bearer_token": "t"}, "only one of them"),
        ({"body": "x", "form": {"a": "b"}}, "only one of them"),
        ({"body": "x", "mode": "batched"}, "leave it out"),
        ({"body": {"text": ["{acton}"]}}, "there is no {acton}; did you mean `action`?"),
        ({"body": 7}, "expected a text, or keys and values"),
        ({"form": {"text": "{"}}, "a lone {"),
        ({"limit": "15"}, "expected a time"),
    ],
)
def test_mistakes_are_named_without_secrets(settings, text) -> None:
    with pytest.raises(ValueError, match="validation error") as refused:
        SinkWebhookSettings(**{"url": "https://a.test/", **settings})
    told = [error["msg"] for error in refused.value.errors()]  # type: ignore[attr-defined]
    assert text in " ".join(told)
    assert "s3cret" not in " ".join(told)


def test_a_url_without_encryption_is_remarked_on(tmp_path) -> None:
    [remark] = SinkWebhook.remarks(SinkWebhookSettings(url="http://a.test/"), tmp_path, {})
    assert "http://a.test has no encryption" in remark
    assert list(SinkWebhook.remarks(SinkWebhookSettings(url="http://127.0.0.1/"), tmp_path, {})) == []
    tls = SinkWebhookSettings(url="http://a.test/", tls={"ca": "x"})
    assert ("tls",) in [path for path, _ in SinkWebhook.check(tls, tmp_path)]


def test_secrets_that_a_server_repeats_are_not_shown(tmp_path) -> None:
    def repeats(request: Request) -> Reply:
        said = f"{request.path} {request.headers.get('authorization')} {request.headers['x-key']}"
        return Reply(400, body=said.encode())

    ways = ({"bearer_token": TOKEN}, {"username": "u", "password": TOKEN})
    with web_receiver() as receiver:
        receiver.reply = repeats
        for number, way in enumerate(ways):
            folder = tmp_path / str(number)
            folder.mkdir()
            url = f"{receiver.url}/{TOKEN}-in-path?key={TOKEN}-in-query"
            with capture_logs() as logs, sink_to(url, folder, headers={"X-Key": f"{TOKEN}-in-header"}, **way) as sink:
                hand_in(sink, events(1))
                told = f"{letters(sink)} {logs}"
            assert "it answers 400" in told
            assert TOKEN not in told
            assert base64.b64encode(f"u:{TOKEN}".encode()).decode() not in told


# ---- in a graph

GRAPH = """
version: 1
name: hook{pid}
cameras: {{a: {{frames: 200, pace_ms: 2}}, b: {{frames: 200, pace_ms: 2}}}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src}}
  post:
    use: sink_webhook
    from: emit
    batch: {{max: 20}}
    with: {{url: "http://127.0.0.1:{port}/${{secret:HOOK_PATH}}", allow_private: true,
           bearer_token: "${{secret:HOOK_TOKEN}}", mode: batched}}
"""


class Restarts:
    """A receiver that is stopped after some events and begins again once the sink says that it waits."""

    def __init__(self) -> None:
        self.receiver: WebReceiver | None = WebReceiver()
        self.port = self.receiver.port
        self.requests: list[Request] = []
        self.waited = ""
        self.shown = ""

    def __call__(self, run: Any) -> None:
        self.shown = json.dumps(as_json(run.status())) + _command_lines()
        if self.receiver and not self.waited and len(self.receiver.requests) >= 3:
            self.stop()
        elif self.receiver is None:
            self.waited = next((one.blocked_on for one in run.status().stages.values() if one.blocked_on), "")
            if self.waited:
                self.receiver = WebReceiver(self.port)

    def stop(self) -> None:
        assert self.receiver
        self.receiver.close()
        self.requests += self.receiver.requests
        self.receiver = None


def _command_lines() -> str:
    """Of all processes that can be seen."""
    lines = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(process.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(lines)


def test_a_restarted_server_gets_all_and_no_secret_shows(tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOOK_TOKEN", TOKEN)
    monkeypatch.setenv("HOOK_PATH", f"{TOKEN}-path")
    restarts = Restarts()
    graph = tmp_path / "graph.yaml"
    graph.write_text(GRAPH.format(pid=os.getpid(), port=restarts.port))
    outcome, status = run_graph(load_plan(graph), restarts)
    restarts.stop()
    assert (outcome.status, outcome.problems) == (0, [])
    assert f"http://127.0.0.1:{restarts.port}" in restarts.waited
    assert restarts.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    got = [one for request in restarts.requests for one in json.loads(request.body)]
    unique = {one["id"]: one for one in got}.values()
    for camera in "ab":
        assert [one["seq"] for one in unique if one["camera"] == camera] == list(range(200))
    captured = capfd.readouterr()
    assert TOKEN not in json.dumps(status) + restarts.shown + captured.out + captured.err
