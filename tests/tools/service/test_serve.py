"""A real run that serves: who may ask for what, and what they get."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.described import assert_as_described
from camgraph_test_stages.services import TOKENS, Served, serving_run, with_tokens
from camgraph_test_stages.waiting import until
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from camgraph.tools.service.web.calls import ROLES

ANSWERED_S = 60.0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_run(tmp_path_factory.mktemp("s"), more=with_tokens()) as run:
        yield run


def test_all_see_whether_it_is_healthy_and_only_the_known_why(served: Served) -> None:
    until(lambda: served.get("/healthz").json() == {"level": "healthy"}, ANSWERED_S, every_s=0.2)
    assert "2 cameras" in served.get("/readyz", "viewer").json()["reason"]


def test_each_call_answers_exactly_those_roles_that_may_make_it(served: Served) -> None:
    """Each refusal of a role comes before the call is looked at: so all calls can be tried with a name of no camera."""
    document = served.get("/openapi.json").json()
    tried = 0
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for role in ROLES:
                place = path.replace("{name}", "none").replace("{incident}", "none").replace("{file}", "none")
                answer = served.call(method.upper(), f"{place}?limit=1", "" if role == "anyone" else role)
                may = ROLES.index(role) >= ROLES.index(operation["x-role"])
                assert (answer.status_code in (401, 403)) != may, (method, path, role, answer.text)
                assert may or answer.status_code == (401 if role == "anyone" else 403)
                tried += 1
    assert tried > 30


def test_a_wrong_token_is_refused_even_where_none_is_needed(served: Served) -> None:
    answer = served.get("/healthz", headers={"Authorization": "Bearer wrong-token-of-nobody"})
    assert (answer.status_code, answer.json()) == (401, {"error": "this token is not known", "id": "token-unknown"})


def _counted(histogram: Metric) -> list[Sample]:
    """The `_count` of each histogram that has counted something, which its last bucket has, too."""
    counts = [one for one in histogram.samples if one.name.endswith("_count") and one.value > 0]
    last = [one for one in histogram.samples if one.labels.get("le") == "+Inf"]
    assert {one.value for one in counts} <= {one.value for one in last}
    return counts


def test_prometheus_reads_the_metrics(served: Served) -> None:
    def families_now() -> dict[str, Metric]:
        text = served.get("/metrics", "viewer").text
        return {family.name: family for family in text_string_to_metric_families(text)}

    until(lambda: len(_counted(families_now()["camgraph_camera_frame_latency_seconds"])) == 2, ANSWERED_S, every_s=0.2)
    until(lambda: len(_counted(families_now()["camgraph_stage_call_seconds"])) >= 2, ANSWERED_S, every_s=0.2)
    families = families_now()
    frames = {sample.labels["camera"]: sample.value for sample in families["camgraph_camera_frames"].samples}
    assert frames.keys() == {"a", "b"}
    assert min(frames.values()) > 0
    assert families["camgraph_sink_waiting_events"].samples
    counts = {sample.labels["camera"] for sample in _counted(families["camgraph_camera_frame_latency_seconds"])}
    assert counts == {"a", "b"}
    assert {"emit", "log"} <= {sample.labels["stage"] for sample in _counted(families["camgraph_stage_call_seconds"])}
    assert all(family.documentation for family in families.values())


def test_a_camera_rests_and_goes_on(served: Served) -> None:
    def camera() -> dict[str, Any]:
        cameras = served.get("/api/cameras", "viewer").json()["cameras"]
        return next(one for one in cameras if one["name"] == "b")

    assert served.call("POST", "/api/cameras/b/pause", "operator").status_code == 202
    until(lambda: camera()["state"] == "paused", ANSWERED_S, every_s=0.2)
    frames = camera()["frames"]
    assert served.call("POST", "/api/cameras/b/resume", "operator").status_code == 202
    until(lambda: camera()["state"] != "paused" and camera()["frames"] > frames + 5, ANSWERED_S, camera, every_s=0.2)
    answer = served.call("POST", "/api/cameras/nobody/pause", "operator")
    assert (answer.status_code, answer.json()["error"]) == (404, "the run has no camera nobody")


def test_the_graph_is_told_without_settings(served: Served) -> None:
    answer = served.get("/api/graph", "viewer")
    assert_as_described("GET", "/api/graph", answer)
    graph = answer.json()
    assert {one["name"]: one["use"] for one in graph["stages"]}.items() >= {("src", "count_source"), ("page", "serve")}
    assert [one["name"] for one in graph["stages"] if one["is_source"]] == ["src"]
    assert ("src", "emit") in {(one["from"], one["to"]) for one in graph["edges"]}
    assert not any(word in answer.text for word in (*TOKENS.values(), "log.jsonl", str(served.folder)))


def test_a_camera_comes_and_goes(served: Served) -> None:
    def names() -> set[str]:
        return {one["name"] for one in served.get("/api/cameras", "viewer").json()["cameras"]}

    settings = {"frames": 1000000, "pace_ms": 20, "live": True}
    answer = served.call("POST", "/api/cameras", "admin", json={"name": "c", "settings": settings})
    assert_as_described("POST", "/api/cameras", answer)
    until(lambda: "c" in names(), ANSWERED_S, every_s=0.2)
    assert served.call("DELETE", "/api/cameras/c", "admin").status_code == 202
    until(lambda: "c" not in names(), ANSWERED_S, every_s=0.2)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"no json", "expected a JSON object"),
        (b"[1]", "expected a JSON object"),
        (b'{"name": 3}', "expected {"),
        (b'{"name": "d", "settings": {}, "url": "x"}', "(url: Extra inputs are not permitted)"),
        (b'{"name": "d", "settings": {"url": "rtsp://evil/${secret:db}"}}', "variables cannot be used here"),
        (b'{"name": "d", "settings": {"url": "/etc/passwd"}}', "a file can only be added on the machine itself"),
        (b'{"name": "d", "settings": {"url": "FILE:///etc/passwd"}}', "a file can only be added"),
        (b'{"name": "d", "settings": {"url": "concat://a|b"}}', "concat:// cannot be added here: expected rtsp, rtsps"),
        (b'{"name": "d", "settings": {"url": "v4l2:///dev/video0"}}', "v4l2:// cannot be added here"),
        (b'{"name": "d", "settings": {"nope": 1}}', "unknown key `nope`"),
        (b"[" * 60_000, "expected a JSON object"),
        (b'{"name": "\\ud800", "settings": {}}', "expected a JSON object"),
    ],
)
def test_nonsense_is_refused_in_words(served: Served, body: bytes, why: str) -> None:
    answer = served.call("POST", "/api/cameras", "admin", content=body)
    assert answer.status_code == 400
    assert why in answer.json()["error"]


def test_a_camera_with_wrong_settings_is_refused_with_an_id(served: Served) -> None:
    settings = {"url": "rtsp://127.0.0.1/x", "nope": 1}
    answer = served.call("POST", "/api/cameras", "admin", json={"name": "d", "settings": settings})
    assert answer.json()["id"] == "key-unknown"


def test_each_refusal_has_the_id_of_its_kind(served: Served) -> None:
    """All others have one as well: `Served.call` looks at each answer."""
    wrong = {"Authorization": "Bearer wrong-token-of-nobody"}
    for answer, kind in (
        (served.get("/api/status"), "token-missing"),
        (served.get("/api/status", headers=wrong), "token-unknown"),
        (served.call("DELETE", "/api/cameras/a", "viewer"), "role-too-low"),
        (served.call("POST", "/api/cameras/a/pause", "admin", headers={"Origin": "http://evil"}), "page-of-others"),
        (served.get("/nothing", "viewer"), "call-unknown"),
        (served.call("PUT", "/api/cameras", "admin"), "call-unknown"),
        (served.get("/page/nothing.js"), "call-unknown"),
        (served.call("POST", "/login", content=bytes(100_000)), "too-large"),
        (served.call("POST", "/login", json={"token": "wrong"}), "token-unknown"),
        (served.get("/api/cameras/nobody/shapes", "viewer"), "name-unknown"),
        (served.get("/api/cameras/a/picture.jpg", "viewer"), "pictures-not-kept"),
        (served.get("/api/cameras/a/live.mp4", "viewer"), "no-picture"),
        (served.get("/api/cameras/a/people", "viewer"), "nothing-to-read"),
        (served.get("/api/incidents/none/clip.mp4", "viewer"), "incident-missing"),
        (served.get("/api/events?limit=x", "viewer"), "request-value"),
    ):
        assert answer.json().get("id") == kind, answer.text


def test_a_large_body_is_refused(served: Served) -> None:
    assert served.call("POST", "/api/cameras", "admin", content=bytes(100_000)).status_code == 413


def test_a_body_without_a_length_is_bounded_as_well(served: Served) -> None:
    answer = served.call("POST", "/login", content=iter([bytes(1000)] * 200))
    assert answer.status_code == 413


def test_viewers_see_no_folders_of_the_machine(served: Served) -> None:
    status = served.get("/api/status", "admin").json()
    assert str(served.folder) in json.dumps(status), "the test shows nothing"
    for path in ("/api/status", "/api/graph", "/api/cameras", "/readyz", "/api/incidents", "/metrics"):
        told = served.get(path, "viewer").text
        assert str(served.folder) not in told
        assert not re.search(r'[" (`]/(?!api)[a-z]+/', told), path


def test_chunks_of_a_byte_without_a_token_keep_nobody_waiting(served: Served) -> None:
    head = b"POST /login HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.port), ANSWERED_S) as client:
        client.sendall(head + b"1\r\nX\r\n" * 20_000)
        began_s = time.monotonic()
        assert served.get("/healthz").status_code == 200
        assert served.get("/metrics", "viewer").status_code == 200
        assert time.monotonic() - began_s < 30
        assert client.recv(100).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("path", ["/login/", "/api/me/", "//evil.example/api/me/"])
def test_no_answer_leads_to_the_host_that_a_request_names(served: Served, path: str) -> None:
    answer = served.get(path, headers={"Host": "evil.example"})
    assert answer.status_code == 404
    assert "location" not in answer.headers


def test_who_leaves_in_the_middle_of_a_request_is_no_bug(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(b"POST /login HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
    for token, status in (("\\ud800aaaaaaaaaaaaaaaaaaa", 400), ("wrong", 401)):
        body = f'{{"token": "{token}"}}'.encode()
        assert served.call("POST", "/login", content=body).status_code == status
    assert served.call("POST", "/logout", headers={"Origin": "http://["}).status_code == 403
    assert "request_failed" not in served.log
    assert "Traceback" not in served.log


def lines_of(served: Served) -> int:
    return len((served.folder / "log.jsonl").read_bytes().splitlines())


def is_stopped(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False


def test_while_it_is_away_events_are_delivered_to_the_others(served: Served) -> None:
    """A sink has only events that are committed. If they waited for the service, none would come."""
    process = served.get("/api/status", "viewer").json()["processes"]["page.0"]
    os.kill(process["pid"], signal.SIGSTOP)
    try:
        until(lambda: is_stopped(process["pid"]), ANSWERED_S)
        before = lines_of(served)
        until(lambda: lines_of(served) >= before + 5, ANSWERED_S)
        assert is_stopped(process["pid"]), "it was away all the time"
    finally:
        with suppress(ProcessLookupError):
            os.kill(process["pid"], signal.SIGKILL)
    until(served.answers, ANSWERED_S, every_s=0.2)
    restarted = served.get("/api/status", "viewer").json()["processes"]["page.0"]
    assert restarted["restarts"] == process["restarts"] + 1


def test_its_process_lets_the_others_go_first(served: Served) -> None:
    """A thread of it that never rests gets a tenth of what a stage gets on the same core."""
    processes = served.get("/api/status", "viewer").json()["processes"]
    nice = {
        name: {os.getpriority(os.PRIO_PROCESS, int(task.name)) for task in Path(f"/proc/{one['pid']}/task").iterdir()}
        for name, one in processes.items()
    }
    assert 10 in nice.pop("page.0")
    assert all(found == {0} for found in nice.values()), nice


def test_no_token_is_found_anywhere(served: Served) -> None:
    places = ["/api/status", "/api/graph", "/metrics", "/openapi.json", "/api/cameras", "/healthz"]
    texts = [served.get(place, "admin").text for place in places] + [served.log]
    texts += [path.read_text(errors="replace") for path in served.folder.glob("*.jsonl")]
    texts.append(json.dumps([Path(f"/proc/{pid}/cmdline").read_text() for pid in _pids(served)]))
    for token in TOKENS.values():
        assert not any(token in text for text in texts)


def _pids(served: Served) -> list[int]:
    return [one["pid"] for one in served.get("/api/status", "viewer").json()["processes"].values()]
