"""The sink for a web service that the module shows: written as there, it keeps the promises of all sinks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from camgraph_test_stages.delivering import delivering, hand_in, letters
from camgraph_test_stages.incident_views import event
from camgraph_test_stages.web_receiver import Reply, Request, WebReceiver, web_receiver

from camgraph.stages.sinks.delivery.web import web_sink
from camgraph.stages.sinks.delivery.web.web_sink import WebSink

TOKEN = "planted-token-of-the-app"


@pytest.fixture
def own_sink() -> type[WebSink[Any]]:
    """The class at the head of the module."""
    code = re.search(r"^    import json\n.*?(?=^\S)", web_sink.__doc__ or "", re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    assert code
    exec(dedent(code[0]), names)
    return names["SinkGotify"]  # type: ignore[no-any-return]


@contextmanager
def sink_to(sink: type[WebSink[Any]], server: WebReceiver, folder: Path, **more: Any) -> Iterator[WebSink[Any]]:
    settings = {"url": server.url, "allow_private": True, "app_token": TOKEN, **more}
    with delivering(sink, settings, folder) as made:
        yield made


def test_each_event_is_a_message_of_the_service(own_sink: type[WebSink[Any]], tmp_path: Path) -> None:
    with web_receiver() as server, sink_to(own_sink, server, tmp_path) as sink:
        hand_in(sink, [event(1, action="fall", camera="room"), event(2, action="fall", camera="hall")])
        bodies = [json.loads(request.body) for request in server.requests]
        assert [request.headers["x-gotify-key"] for request in server.requests] == [TOKEN, TOKEN]
    assert [body["title"] for body in bodies] == ["fall on room", "fall on hall"]


def test_a_token_that_the_server_repeats_is_hidden(own_sink: type[WebSink[Any]], tmp_path: Path) -> None:
    def reply(request: Request) -> Reply:
        return Reply(400, body=f"unknown key {request.headers['x-gotify-key']} at {request.path}".encode())

    with web_receiver() as server, sink_to(own_sink, server, tmp_path) as sink:
        server.reply = reply
        hand_in(sink, [event(1)])
        [why] = letters(sink).values()
    assert "unknown key ***" in why
    assert TOKEN not in why
    assert "/hook" not in why


def test_a_private_address_is_refused_by_check(own_sink: type[WebSink[Any]], tmp_path: Path) -> None:
    settings = own_sink.settings_type.model_validate({"url": "http://127.0.0.1:1/x", "app_token": TOKEN})
    problems: Sequence[Any] = list(own_sink.check(settings, tmp_path))
    assert [place for place, _ in problems] == [("url",)]
    assert "allow_private" in problems[0][1]
