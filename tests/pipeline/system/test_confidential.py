"""Which settings hold credentials, and memory that other processes cannot read."""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Iterator
from typing import Any

import pytest

from camgraph.pipeline.system import confidential
from camgraph.pipeline.system.confidential import allow_dumps, forbid_dumps, holds_credentials, secrets_in

_PR_GET_DUMPABLE = 3


def is_dumpable() -> bool:
    return bool(ctypes.CDLL(None).prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0))


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """What is logged; this process can be debugged again after the test."""
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    monkeypatch.setattr(confidential, "_warned", False)
    yield []
    monkeypatch.undo()
    allow_dumps()


def test_a_process_gets_the_secrets_that_it_needs_to_hide() -> None:
    settings = [{"a": {"url": "rtsp://u:ge%2Fheim@h"}}, ({"x": [1, "tok en"]}, {})]
    assert secrets_in(settings, ["ge/heim", "tok en", "other"]) == ("ge/heim", "tok en")
    assert holds_credentials(settings)
    assert not holds_credentials([{"url": "rtsp://h/x", "path": "/a@b:c"}])


def test_hidden_memory_is_no_warning(logged: list[tuple[str, dict[str, Any]]]) -> None:
    forbid_dumps(lambda event, **values: logged.append((event, values)))
    assert (is_dumpable(), logged) == (False, [])
    allow_dumps()
    assert is_dumpable()


def test_memory_that_is_not_hidden_is_warned_of_once(
    logged: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel refuses an option that it does not know; ctypes raises nothing for that."""
    monkeypatch.setattr(confidential, "_PR_SET_DUMPABLE", 0x7FFFFFFF)
    forbid_dumps()
    for _ in range(2):
        forbid_dumps(lambda event, **values: logged.append((event, values)))
    ((event, values),) = logged
    assert event == "memory_not_hidden"
    assert values["why"] == "prctl: Invalid argument"


@pytest.mark.parametrize("error", [OSError, AttributeError, TypeError])
def test_a_system_without_the_call_is_warned_of(
    logged: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def lacking(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", lacking)
    forbid_dumps(lambda event, **values: logged.append((event, values)))
    assert [values["why"] for _, values in logged] == ["this system has no prctl"]
