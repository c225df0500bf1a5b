"""Incidents that a real run keeps, and folders that others have had their hands in."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from camgraph_test_stages.described import assert_as_described, every_call
from camgraph_test_stages.incident_views import incident
from camgraph_test_stages.services import Served, serving_run, with_tokens, write_light
from camgraph_test_stages.waiting import until
from starlette.requests import Request
from structlog import get_logger

from camgraph.pipeline.messages import Event
from camgraph.pipeline.testing import stamp
from camgraph.stages.sinks.footage.incident_labels import NAME
from camgraph.stages.sinks.footage.incident_record import FileState, IncidentRecord
from camgraph.tools.lab.benchmarks.incident_lists import record as record_of
from camgraph.tools.service.history.event_history import EventHistory
from camgraph.tools.service.history.incident_calls import incident_calls
from camgraph.tools.service.web.access import Access, Token
from camgraph.tools.service.web.app import build_app
from camgraph.tools.service.web.file_answer import FileAnswer, OpenFile
from camgraph.tools.service.web.openapi import openapi_of
from camgraph.tools.service.web.thread_pools import ThreadPool, ThreadPools

WITHIN_S = 90.0
BEGUN_S = 1_700_000_000.0
NEWEST = datetime(2026, 11, 22, 21, 0, tzinfo=UTC)
GRAPH = """
version: 1
name: shown
camera_defaults: {{loop: true, realtime: true, url: cam.mp4}}
cameras:
  hall: {{}}
stages:
{people}
  actions:
    use: rules
    from: tracks
    with: {{rules: [{{id: seen, when: score > 0.3, hold: 0.2s, about: who is there}}]}}
  footage: {{use: sink_footage, from: actions, with: {{path: footage, before_s: 1, after_s: 1}}}}
  page: {{use: serve, from: events, with: {{address: "127.0.0.1:{port}"{more}}}}}
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("i")
    write_light(folder)
    with serving_run(folder, GRAPH, more=with_tokens()) as run:
        yield run


def finished(served: Served) -> dict[str, Any]:
    """An incident that has all its files."""

    def found() -> dict[str, Any] | None:
        listed = served.get("/api/incidents", "viewer").json()["incidents"]
        return next((one for one in listed if one["clip"]["state"] == "ready" and one["phase"] == "over"), None)

    return until(found, WITHIN_S, every_s=0.3)  # type: ignore[return-value]


def test_an_incident_is_told_with_its_reasons_and_files(served: Served) -> None:
    one = finished(served)
    assert (one["camera"], one["rule"], one["about"], one["people"]) == ("hall", "seen", "who is there", 1)
    assert one["because"][0].startswith("score > 0.3: 0.9")
    assert one["measured"][0].startswith("How sure the model is that it is a person: 90%")
    assert one["duration_s"] > 0
    assert served.get(f"/api/incidents/{one['incident']}", "viewer").json()["start_time"] == one["start_time"]
    picture = served.get(one["snapshot"]["url"], "viewer")
    assert picture.headers["content-type"] == "image/jpeg"
    assert picture.content[:2] == b"\xff\xd8"
    newest = served.get("/api/cameras/hall/picture.jpg", "viewer")
    assert newest.content[:2] == b"\xff\xd8"
    again = served.get("/api/cameras/hall/picture.jpg", "viewer", headers={"If-None-Match": newest.headers["etag"]})
    assert again.status_code in (200, 304)


def test_a_clip_comes_in_ranges(served: Served) -> None:
    url = finished(served)["clip"]["url"]
    whole = served.get(url, "viewer")
    assert whole.headers["content-type"] == "video/mp4"
    part = served.get(url, "viewer", headers={"Range": "bytes=4-7"})
    assert (part.status_code, part.content) == (206, b"ftyp")
    assert part.headers["content-range"] == f"bytes 4-7/{len(whole.content)}"
    beyond = served.get(url, "viewer", headers={"Range": f"bytes={len(whole.content)}-"})
    assert beyond.status_code == 416
    for nonsense in ("bytes=9-4", "bytes=a-b", "pages=1-2", "bytes=" + "0-1," * 500):
        assert served.get(url, "viewer", headers={"Range": nonsense}).status_code < 500


def test_who_may_label_does_and_others_see_it(served: Served) -> None:
    url = f"/api/incidents/{finished(served)['incident']}"
    answer = served.call("POST", f"{url}/labels", "operator", json={"label": "false_alarm", "note": "<b>a coat</b>"})
    [label] = answer.json()["labels"]
    assert (label["label"], label["note"], label["by"]) == ("false_alarm", "<b>a coat</b>", "operator")
    assert served.get(url, "viewer").json()["labels"] == [label]
    [line] = (served.folder / "footage" / NAME).read_text().splitlines()
    assert json.loads(line) == {"version": 1, "incident": url.rpartition("/")[2], **label}
    assert served.call("POST", f"{url}/keep", "operator", json={"keep": True}).json()["keep"] is True
    assert served.call("POST", f"{url}/labels", "operator", json={"label": "boring"}).status_code == 400


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/api/cameras", {"GET", "HEAD", "POST"}), ("/api/cameras/hall", {"DELETE"}), ("/healthz", {"GET", "HEAD"})],
)
def test_who_tries_another_method_is_told_which_there_are(served: Served, path: str, allowed: set[str]) -> None:
    answer = served.call("PUT", path, "admin")
    assert (answer.status_code, set(answer.headers["allow"].split(", "))) == (405, allowed)


def test_each_answer_is_as_the_openapi_document_says(served: Served) -> None:
    names = {"{name}": "hall", "{incident}": finished(served)["incident"]}
    for call in every_call():
        path = call.path
        for name, value in names.items():
            path = path.replace(name, value)
        if (
            call.method == "GET"
            and "event-stream" not in call.gives.media
            and not path.endswith(("live.mp4", "mjpeg", "}"))
        ):
            assert_as_described("GET", call.path, served.get(path, "viewer"))
    one, place = "/api/incidents/{incident}", f"/api/incidents/{names['{incident}']}"
    for path, body in (("labels", {"label": "acknowledged"}), ("keep", {"keep": False})):
        answer = served.call("POST", f"{place}/{path}", "operator", json=body)
        assert_as_described("POST", f"{one}/{path}", answer)
    documented = served.get("/openapi.json").json()["paths"]
    del documented["/openapi.json"]
    assert documented == openapi_of(every_call())["paths"]


# ---- without a run


class Service:
    """The calls over a folder of footage."""

    def __init__(self, *folders: Path, history: EventHistory | None = None) -> None:
        history = history or EventHistory(Path("/none/history"), get_logger(), keep_s=1e6, keep_bytes=1e8)
        access = Access([Token("boss", "b" * 20, "admin")])
        calls = incident_calls(folders, history, ThreadPools(), lambda: BEGUN_S)
        self._transport = httpx.ASGITransport(build_app(calls, access, get_logger()))

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def calling() -> httpx.Response:
            headers = {"Authorization": f"Bearer {'b' * 20}"}
            async with httpx.AsyncClient(transport=self._transport, base_url="http://a", headers=headers) as client:
                return await client.request(method, path, **more)

        return asyncio.run(calling())

    def get(self, path: str) -> httpx.Response:
        return self.call("GET", path)

    def ids(self, query: str = "") -> list[str]:
        return [one["incident"] for one in self.get(f"/api/incidents{query}").json()["incidents"]]


def kept(folder: Path, number: int) -> IncidentRecord:
    one = record_of(folder, number, NEWEST - timedelta(hours=number))
    one.write()
    return one


def test_pages_follow_each_other(tmp_path: Path) -> None:
    expected = [kept(tmp_path, number).incident for number in range(7)]
    service, found, query = Service(tmp_path), [], "?limit=3"
    while True:
        answer = service.get(f"/api/incidents{query}").json()
        found += [one["incident"] for one in answer["incidents"]]
        if not answer["more"]:
            break
        query = f"?limit=3&before={found[-1]}"
    assert found == expected
    assert service.ids("?since=2026-11-22T18:30:00Z") == expected[:3]
    assert service.ids("?camera=room-3") == [expected[3]]
    assert service.ids("?rule=fall") == expected
    assert service.get("/api/incidents?before=nobody").status_code == 404


def test_no_incident_of_one_second_is_left_out_between_pages(tmp_path: Path) -> None:
    """Their files are in the order of their names, whichever began first."""
    expected = set()
    for number in range(8):
        one = record_of(tmp_path, number, NEWEST.replace(microsecond=(7 * number % 8) * 1000))
        one.write()
        expected.add(one.incident)
    service = Service(tmp_path)
    for limit in (1, 2, 3):
        found, query = list[str](), f"?limit={limit}"
        while page := service.ids(query):
            found += page
            query = f"?limit={limit}&before={found[-1]}"
        assert sorted(found) == sorted(expected)


def test_pages_of_two_folders_are_one_list(tmp_path: Path) -> None:
    expected = [kept(tmp_path / ("a" if number % 3 else "b"), number).incident for number in range(9)]
    service, found, query = Service(tmp_path / "a", tmp_path / "b"), [], "?limit=2"
    for _ in range(5):
        found += service.ids(query)
        query = f"?limit=2&before={found[-1]}"
    assert found == expected


def test_those_that_go_on_are_found_among_many(tmp_path: Path) -> None:
    """One without an end from before this run does not go on."""
    every = [kept(tmp_path, number) for number in range(60)]
    for one in (every[50], every[55]):
        one.last = {}
        one.write()
    os.utime(every[55].path, (BEGUN_S - 100,) * 2)
    service = Service(tmp_path)
    assert service.ids("?phase=running") == [every[50].incident]
    assert service.get(f"/api/incidents/{every[55].incident}").json()["phase"] == "lost"


def test_one_of_a_dead_run_does_not_go_on(tmp_path: Path) -> None:
    """The next run writes the record anew. An end that nobody saw has no duration either."""
    old, ended = kept(tmp_path, 1), kept(tmp_path, 2)
    old.last, old.begun_s = {}, BEGUN_S - 100
    ended.last = {**ended.last, "data": {**ended.last["data"], "reason": "lost", "duration_s": 1.2}}
    for one in (old, ended):
        one.write()
    service = Service(tmp_path)
    assert service.ids("?phase=running") == []
    for one in (old, ended):
        found = service.get(f"/api/incidents/{one.incident}").json()
        assert (found["phase"], found["duration_s"], found["end_time"]) == ("lost", None, None)


def test_without_pictures_it_is_said_how_to_get_them() -> None:
    answer = Service().get("/api/incidents").json()
    assert answer["incidents"] == []
    assert "sink_footage" in answer["why"]
    assert Service().get("/api/incidents/1").status_code == 404


@pytest.fixture
def history(tmp_path: Path) -> Iterator[EventHistory]:
    one = EventHistory(tmp_path / "history.sqlite", get_logger(), keep_s=1e6, keep_bytes=1e8)
    yield one
    one.close()


def test_without_pictures_the_history_tells_of_incidents(tmp_path: Path, history: EventHistory) -> None:
    for n in range(5):
        history.add([incident(f"{n:04x}", "start", at_s=n, camera=f"cam{n % 2}").event])
    end = incident("0003", "end", at_s=9, start_time="2026-11-23T12:00:03.000Z", duration_s=6.0, reason="condition")
    history.add(
        [incident("0003", "update", at_s=5).event, end.event, incident("00aa", "single", at_s=99, people=5).event]
    )
    service = Service(history=history)
    assert service.ids() == ["00aa", "0004", "0003", "0002", "0001", "0000"]
    assert service.ids("?limit=2&before=0004") == ["0003", "0002"]
    assert service.get("/api/incidents?limit=2").json()["more"] is True
    assert service.ids("?camera=cam1") == ["0003", "0001"]
    assert service.ids("?rule=fall&since=2026-11-23T12:00:04Z") == ["00aa", "0004"]
    assert "nobody" in service.get("/api/incidents?before=nobody").json()["error"]
    one = service.get("/api/incidents/0003").json()
    assert (one["phase"], one["duration_s"], one["end_time"]) == ("over", 6.0, "2026-11-23T12:00:09.000Z")
    assert one["snapshot"] == one["clip"]
    assert (one["clip"]["state"], one["clip"]["url"]) == ("none", None)
    assert service.get("/api/incidents/0004").json()["phase"] == "running"
    assert service.get("/api/incidents/00aa").json()["phase"] == "single"
    assert service.get("/api/incidents/0003/clip.mp4").status_code == 404
    assert service.get("/api/incidents/000").status_code == 404
    assert service.call("POST", "/api/incidents/0003/keep", json={"keep": True}).status_code == 400
    answer = service.call("POST", "/api/incidents/0003/labels", json={"label": "true_alarm"})
    assert [label["label"] for label in answer.json()["labels"]] == ["true_alarm"]
    assert (tmp_path / NAME).exists()


def test_without_pictures_those_that_go_on_are_found_among_many(tmp_path: Path, history: EventHistory) -> None:
    """Also by another process of the service, which has read the file; one of a run that died does not go on."""
    history.add([incident(f"{n:04x}", "start", at_s=n).event for n in (1, 2, 3)])
    history.add([incident(f"{n:04x}", "single", at_s=n).event for n in range(10, 90)])
    history.add([incident("0002", "end", at_s=95).event])
    assert Service(history=history).ids("?phase=running&limit=5") == ["0003", "0001"]
    assert Service(history=history).ids("?phase=running&camera=nowhere") == []
    history.close()
    with closing(sqlite3.connect(history.path)) as db:
        db.execute("UPDATE events SET kept_s = ? WHERE incident = '0001'", (BEGUN_S - 100,))
        db.commit()
    again = EventHistory(history.path, get_logger(), keep_s=1e12, keep_bytes=1e8)
    again.open()
    service = Service(history=again)
    assert service.ids("?phase=running&limit=5") == ["0003"]
    assert service.get("/api/incidents/0001").json()["phase"] == "lost"
    again.add([incident("0003", "end", at_s=99).event])
    assert service.ids("?phase=running") == []
    again.close()


def test_what_has_no_footage_is_listed_as_well(tmp_path: Path, history: EventHistory) -> None:
    """The disk was full, or the footage is of other rules."""
    shown = kept(tmp_path / "footage", 1)
    seen = {**shown.first, "id": "x", "time": "2026-11-22T20:00:00.000Z"}
    history.add([Event(stamp(0), "x", shown.incident, "start", json.dumps(seen).encode())])
    history.add([incident("0001", "start", at_s=1).event, incident("0002", "single", at_s=2).event])
    service = Service(tmp_path / "footage", history=history)
    assert service.ids() == ["0002", "0001", shown.incident]
    assert service.ids("?phase=running") == ["0001"], "the record has an end already"
    first, _, third = service.get("/api/incidents").json()["incidents"]
    assert (first["clip"]["state"], third["clip"]["state"]) == ("none", "ready")
    assert "were not kept, or are removed" in first["snapshot"]["why"]
    assert service.get("/api/incidents/0001").json()["phase"] == "running"
    assert "were not kept" in service.get("/api/incidents/0001/clip.mp4").json()["error"]
    assert service.call("POST", "/api/incidents/0001/keep", json={"keep": True}).status_code == 400
    service.call("POST", "/api/incidents/0001/labels", json={"label": "acknowledged"})
    assert (tmp_path / "footage" / NAME).exists()


def test_a_sink_that_hangs_does_not_hide_an_end(tmp_path: Path, history: EventHistory) -> None:
    one = kept(tmp_path / "footage", 1)
    for phase, event in (("start", one.first), ("end", {**one.last, "type": "camgraph.incident.end"})):
        body = json.dumps({**event, "id": phase}).encode()
        history.add([Event(stamp(0), phase, one.incident, phase, body)])
    one.last = {}
    one.write()
    service = Service(tmp_path / "footage", history=history)
    assert service.ids("?phase=running") == []
    assert service.get("/api/incidents").json()["incidents"][0]["phase"] == "over"


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 50])
def test_pages_go_from_the_history_on_to_the_footage(
    tmp_path: Path, history: EventHistory, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr("camgraph.tools.service.history.all_incidents._CHUNK", 2)
    footage = [kept(tmp_path / ("a" if number % 3 else "b"), number) for number in range(9)]
    for one in reversed(footage[:5]):
        history.add(
            [
                Event(
                    stamp(0),
                    one.incident,
                    one.incident,
                    "start",
                    json.dumps({**one.first, "id": one.incident}).encode(),
                )
            ]
        )
    history.add([incident("0001", "start", at_s=1).event])
    service = Service(tmp_path / "a", tmp_path / "b", history=history)
    found, query, more = list[str](), f"?limit={limit}", True
    while more:
        page = service.get(f"/api/incidents{query}").json()
        found += [one["incident"] for one in page["incidents"]]
        query, more = f"?limit={limit}&before={found[-1]}", page["more"]
    assert found == ["0001", *(one.incident for one in footage)]


ODD = [
    {"people": 5, "zones": 5, "evidence": [1]},
    {"evidence": {"conditions": [1, {"left": "<b>"}]}},
    {"zones": [{"a": 1}, "<script>alert(1)</script>"]},
    {"rule": {"id": "r", "about": "half \ud800"}},
]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_an_odd_record_does_not_hide_the_others(tmp_path: Path, history: EventHistory, odd: dict[str, Any]) -> None:
    kept(tmp_path / "footage", 1)
    other = kept(tmp_path / "footage", 2)
    text = other.path.read_text()
    other.path.write_text(json.dumps({**json.loads(text), "first": {**other.first, "data": {**other.data, **odd}}}))
    answer = Service(tmp_path / "footage").get("/api/incidents")
    assert len(answer.json()["incidents"]) == 2
    assert answer.headers["content-type"] == "application/json"
    one = incident("0001", "start", **{key: value for key, value in odd.items() if key != "rule"}).event
    history.add([one, incident("0002", "start").event])
    assert Service(history=history).ids() == ["0002", "0001"]


def test_half_a_character_is_no_note(tmp_path: Path) -> None:
    url = f"/api/incidents/{kept(tmp_path, 1).incident}/labels"
    answer = Service(tmp_path).call("POST", url, content=b'{"label": "true_alarm", "note": "\\ud800"}')
    assert (answer.status_code, "a JSON object" in answer.json()["error"]) == (400, True)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("camra=a", "unknown parameter camra; did you mean `camera`"),
        ("camera=%00", "camera: expected a name of letters"),
        ("camera=" + "a" * 5000, "camera: expected a name of letters"),
        ("phase=over", "phase: expected running"),
        ("limit=0", "limit: expected a number from 1 to 200"),
        ("limit=201", "expected a number"),
        ("limit=%D9%A3", "expected a number"),
        ("limit=" + "9" * 5000, "expected a number"),
        ("since=yesterday", "since: expected a time such as"),
        ("since=0001-01-01T00:00:00%2B23:59", "since: expected a time"),
    ],
)
def test_parameters_that_cannot_be_meant(tmp_path: Path, query: str, why: str) -> None:
    answer = Service(tmp_path).get(f"/api/incidents?{query}")
    assert answer.status_code == 400
    assert why in answer.json()["error"]


def test_no_file_outside_of_the_folder_is_given(tmp_path: Path) -> None:
    folder, secret = tmp_path / "footage", tmp_path / "secret.txt"
    secret.write_text("secret")
    one = kept(folder, 1)
    one.file("snapshot").symlink_to(secret)
    one.file("clip").mkdir()
    url, service = f"/api/incidents/{one.incident}", Service(folder)
    names = ["snapshot.jpg", "clip.mp4", "crops/secret.txt", "crops/%2e%2e%2f%2e%2e%2fsecret.txt"]
    for name in names:
        answer = service.get(f"{url}/{name}")
        assert answer.status_code == 404, name
        assert "secret" not in answer.text.replace("secret.txt", "")
    for name in ("..", "%2e%2e", "*", "", "a" * 4000, one.incident[:8], "%00", "%ff"):
        assert service.get(f"/api/incidents/{name}/snapshot.jpg").status_code == 404


def test_a_clip_is_given_while_it_grows(tmp_path: Path) -> None:
    one = kept(tmp_path, 1)
    one.files["clip"] = FileState("pending")
    one.write()
    service, url = Service(tmp_path), f"/api/incidents/{one.incident}"
    assert service.get(url).json()["clip"]["url"] is None
    part = one.file("clip").with_name(f"{one.file('clip').name}.part")
    part.write_bytes(b"begun")
    assert service.get(url).json()["clip"] == {"state": "pending", "url": f"{url}/clip.mp4"}
    assert service.get(f"{url}/clip.mp4").content == b"begun"
    part.rename(one.file("clip"))
    assert service.get(f"{url}/clip.mp4").content == b"begun"


def test_no_clip_of_another_camera_is_given(tmp_path: Path) -> None:
    one = kept(tmp_path, 1)
    (tmp_path / "secret.mp4.part").write_bytes(b"secret")
    one.files["clip"] = FileState("pending", grows_in="../secret.mp4")
    one.write()
    assert Service(tmp_path).get(f"/api/incidents/{one.incident}/clip.mp4").status_code == 404


RANGES = [
    ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
    ("bytes=7-", 206, b"789", "bytes 7-9/10"),
    ("bytes=-3", 206, b"789", "bytes 7-9/10"),
    ("bytes=-99", 206, b"0123456789", "bytes 0-9/10"),
    ("bytes=8-999999999999", 206, b"89", "bytes 8-9/10"),
    ("bytes=10-", 416, b"", "bytes */10"),
    ("bytes=-0", 416, b"", "bytes */10"),
    *((odd, 200, b"0123456789", None) for odd in ("bytes=", "bytes=-", "bytes=4-2", "bytes=a-b", "pages=1-2")),
    *((odd, 200, b"0123456789", None) for odd in ("bytes=0-1,3-4", "bytes=" + "9" * 5000 + "-", "bytes=--1")),
]


@pytest.mark.parametrize(("asked", "status", "content", "told"), RANGES)
def test_ranges(tmp_path: Path, asked: str, status: int, content: bytes, told: str | None) -> None:
    one = kept(tmp_path, 1)
    one.file("clip").write_bytes(b"0123456789")
    service, url = Service(tmp_path), f"/api/incidents/{one.incident}/clip.mp4"
    answer = service.call("GET", url, headers={"Range": asked})
    assert (answer.status_code, answer.content, answer.headers.get("content-range")) == (status, content, told)
    assert answer.headers["content-length"] == str(len(content))
    tag = service.get(url).headers["etag"]
    assert service.call("GET", url, headers={"Range": asked, "If-Range": tag}).status_code == status
    assert service.call("GET", url, headers={"Range": asked, "If-Range": '"old"'}).content == b"0123456789"
    assert service.call("GET", url, headers={"Range": asked, "If-None-Match": tag}).status_code == 304
    assert service.call("HEAD", url, headers={"Range": asked}).headers["content-length"] == str(len(content))


def test_a_file_that_grows_meanwhile_is_sent_as_it_was_announced(tmp_path: Path) -> None:
    path = tmp_path / "clip"
    path.write_bytes(b"begun")
    request = Request({"type": "http", "method": "GET", "headers": []})
    descriptor, threads = os.open(path, os.O_RDONLY), ThreadPool("the disk", 1)
    answer = FileAnswer(request, OpenFile.of(descriptor), "video/mp4", threads)
    with path.open("ab") as file:
        file.write(bytes(1000))

    async def whole() -> bytes:
        return b"".join([bytes(piece) async for piece in answer.body_iterator])  # type: ignore[arg-type]

    assert asyncio.run(whole()) == b"begun"
    assert answer.headers["content-length"] == "5"
    os.close(descriptor)


def test_labels_of_others_and_torn_lines_are_passed_over(tmp_path: Path) -> None:
    one = kept(tmp_path, 1)
    torn = b'{"incident": 5}\n[]\nnonsense\xff\n{"incident": "' + one.incident.encode()
    (tmp_path / NAME).write_bytes(torn)
    service = Service(tmp_path)
    url = f"/api/incidents/{one.incident}"
    for label in ("acknowledged", "true_alarm"):
        assert service.call("POST", f"{url}/labels", json={"label": label}).status_code == 200
    assert [one["label"] for one in service.get(url).json()["labels"]] == ["acknowledged", "true_alarm"]
    assert (tmp_path / NAME).read_bytes().startswith(torn + b"\n")
    (tmp_path / NAME).write_bytes(b"")
    assert service.get(url).json()["labels"] == []


def test_no_label_is_written_through_a_link(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "footage", tmp_path / "elsewhere"
    one = kept(folder, 1)
    (folder / NAME).symlink_to(elsewhere)
    answer = Service(folder).call("POST", f"/api/incidents/{one.incident}/labels", json={"label": "acknowledged"})
    assert answer.status_code == 503
    assert not elsewhere.exists()


def test_older_labels_are_read_and_newer_ones_passed_over(tmp_path: Path) -> None:
    one = kept(tmp_path, 1)
    facts = {"incident": one.incident, "label": "true_alarm", "note": "", "by": "", "time": "2026-11-22T21:14:05Z"}
    lines = [facts, {"version": 2, **facts, "mood": "good"}, {"version": 1, **facts, "note": "of now"}]
    (tmp_path / NAME).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    labels = Service(tmp_path).get(f"/api/incidents/{one.incident}").json()["labels"]
    assert [label["note"] for label in labels] == ["", "of now"]


def test_an_incident_has_at_most_so_many_labels(tmp_path: Path) -> None:
    one, other = kept(tmp_path, 1), kept(tmp_path, 2)
    line = {"incident": one.incident, "label": "true_alarm", "by": "", "time": "2026-11-22T21:14:05Z"}
    (tmp_path / NAME).write_text("".join(f"{json.dumps({**line, 'note': str(n)})}\n" for n in range(99)))
    service, size = Service(tmp_path), 0
    for code in (200, 409, 409):
        answer = service.call("POST", f"/api/incidents/{one.incident}/labels", json={"label": "acknowledged"})
        assert answer.status_code == code
        size = size or (tmp_path / NAME).stat().st_size
    assert answer.json()["id"] == "too-many-labels"
    assert "this incident has 100 labels already" in answer.json()["error"]
    assert (tmp_path / NAME).stat().st_size == size
    answer = service.call("POST", f"/api/incidents/{other.incident}/labels", json={"label": "acknowledged"})
    assert answer.status_code == 200
    with (tmp_path / NAME).open("a") as file:
        file.writelines(f"{json.dumps({**line, 'note': f'more {n}'})}\n" for n in range(500))
    labels = service.get(f"/api/incidents/{one.incident}").json()["labels"]
    assert [label["note"] for label in labels] == [f"more {n}" for n in range(400, 500)]
