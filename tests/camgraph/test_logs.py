"""Lines of a run in a program that has configured structlog: ours lose credentials, its own stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog

from camgraph.logs import log_lines

SECRET_URL = "rtsp://viewer:geheim@10.0.0.1/main"


@pytest.fixture
def lines() -> Iterator[list[dict[str, Any]]]:
    seen: list[dict[str, Any]] = []

    def keep(_: Any, __: str, event: MutableMapping[str, Any]) -> Any:
        seen.append(dict(event))
        raise structlog.DropEvent

    structlog.configure(processors=[keep])
    yield seen
    structlog.reset_defaults()


def as_of(module: str, code: str) -> None:
    exec(code, {"__name__": module, "log": structlog.get_logger(), "URL": SECRET_URL})


@pytest.mark.parametrize("code", ["log.error('lost', url=URL)", "log.error('lost', urls=[URL])"])
def test_our_lines_lose_credentials(lines: list[dict[str, Any]], code: str) -> None:
    log_lines()
    log_lines()
    as_of("camgraph.pipeline.supervision.supervisor", code)
    assert len(lines) == 1
    assert "geheim" not in str(lines)
    assert "10.0.0.1" in str(lines)


def test_exceptions_of_ours_lose_credentials(lines: list[dict[str, Any]]) -> None:
    log_lines()
    as_of(
        "camgraph.stages.video.capture", "try:\n    raise ValueError(URL)\nexcept ValueError:\n    log.exception('oh')"
    )
    assert "ValueError" in lines[0]["exception"]
    assert "geheim" not in str(lines)


def test_lines_of_the_program_stay_as_they_are(lines: list[dict[str, Any]]) -> None:
    log_lines()
    as_of("my_program", "log.info('mine', url=URL, things=[1, 2])")
    assert lines == [{"event": "mine", "url": SECRET_URL, "things": [1, 2]}]
