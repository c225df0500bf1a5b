"""What reaches a log: bounded, plain, and without a password, whatever a stage puts into it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from camgraph.pipeline.system.logs import log_to_stderr

URL = "rtsp://viewer:geheim@10.0.0.1/main"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("value", [URL, ValueError(URL), [URL], {"a": (URL,)}, URL.encode()])
def test_a_password_is_hidden_wherever_it_stands(value: object, *, as_json: bool) -> None:
    lines: list[str] = []
    log_to_stderr(as_json=as_json, sink=lines.append)
    structlog.get_logger().error("oh", what=value, n=3)
    assert len(lines) == 1
    assert "geheim" not in lines[0]
    assert "10.0.0.1" in lines[0]


def test_an_exception_keeps_its_traceback_and_hides_the_password() -> None:
    lines: list[str] = []
    log_to_stderr(sink=lines.append)
    try:
        raise ValueError(URL)
    except ValueError:
        structlog.get_logger().exception("oh")
    assert "Traceback" in lines[0]
    assert "geheim" not in lines[0]
