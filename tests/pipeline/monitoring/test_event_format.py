"""Who reads and writes the bodies of events is found by an entry point, and there is one."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.monitoring import event_format
from camgraph.stages.events import CloudEvents


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    event_format.event_format.cache_clear()
    yield
    event_format.event_format.cache_clear()


def points(*values: str) -> list[EntryPoint]:
    return [EntryPoint(f"events{n}", value, event_format.GROUP) for n, value in enumerate(values)]


def test_the_installed_format_is_found() -> None:
    assert isinstance(event_format.event_format(), CloudEvents)


def test_the_same_format_installed_twice_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_format, "entry_points", lambda group: points(*["camgraph.stages.events:CloudEvents"] * 2))
    assert isinstance(event_format.event_format(), CloudEvents)


@pytest.mark.parametrize(("values", "found"), [((), "none"), (("a:A", "b:B"), "a:A, b:B")])
def test_none_or_two_are_an_error(monkeypatch: pytest.MonkeyPatch, values: tuple[str, ...], found: str) -> None:
    monkeypatch.setattr(event_format, "entry_points", lambda group: points(*values))
    with pytest.raises(EnvironmentProblem, match=f"expected one entry point .*, found {found}: install camgraph"):
        event_format.event_format()
