"""Stages of this and of other packages, found by name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import pytest
from camgraph_test_stages.source import CountSource
from pydantic import BaseModel

from camgraph.pipeline import registry
from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.messages import Event, Message
from camgraph.pipeline.registry import find_stage, place_in_stage, stage_distribution, stage_names
from camgraph.pipeline.stage import Ports, Settings, Source, Stage

Register = Callable[..., None]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Iterator[Register]:
    """Pretend that these entry points (name, value) are all that is installed."""

    def replace(*points: tuple[str, str]) -> None:
        found = [EntryPoint(name, value, registry.GROUP) for name, value in points]
        monkeypatch.setattr(registry, "entry_points", lambda group: found)

    def forget() -> None:
        registry.registered.cache_clear()
        find_stage.cache_clear()

    forget()
    yield replace
    forget()


def test_a_stage_of_another_package_is_found_like_our_own() -> None:
    assert find_stage("count_source") is CountSource
    assert stage_distribution("count_source") == "camgraph-test-stages"
    assert "count_source" in stage_names("camgraph-test-stages")
    assert "count_source" not in stage_names("camgraph")
    assert {"count_source", "capture", "outbox"} <= set(stage_names())


def test_a_bug_of_a_stage_is_not_taken_for_one_of_the_runtime() -> None:
    with pytest.raises(AttributeError) as bug:
        CountSource.is_live(None)
    assert place_in_stage(bug.value).startswith("camgraph_test_stages.source, line ")
    assert place_in_stage(RuntimeError("of nobody")) == ""


def test_a_mistyped_name() -> None:
    with pytest.raises(UserError, match="no stage is called `cuont_source`; did you mean `count_source`"):
        find_stage("cuont_source")
    with pytest.raises(UserError, match="no stage is called `zzz`; see `camgraph stages`"):
        find_stage("zzz")


class NoTuple(Stage[Settings]):
    inputs = Message
    outputs = Event  # type: ignore[assignment]


class NoType(Stage[Settings]):
    inputs = "Frame"  # type: ignore[assignment]


class NoPorts(Stage[Settings]):
    inputs: ClassVar[Ports] = {}


class OwnSettings(Settings):
    below: float = 1.0


class SettingsNotDeclared(Stage[OwnSettings]):
    inputs = Message


class SettingsAreNoClass(Stage[Any]):
    inputs = Message
    settings_type = {}  # type: ignore[assignment]  # noqa: RUF012


class SettingsOfPydantic(Stage[Any]):
    inputs = Message
    settings_type = BaseModel  # type: ignore[assignment]


class WithOwnSettings(Stage[Any]):
    inputs = Message
    settings_type = OwnSettings


class SettingsWithoutThoseOfItsBase(WithOwnSettings):
    settings_type = Settings  # type: ignore[assignment]


class NoProcess(Stage[Settings]):
    inputs = Message


class NoFrames(Source[Settings]):
    outputs = (Message,)


class OwnInit(Stage[Settings]):
    inputs = Message

    def __init__(self) -> None: ...

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        return ()


class NoSend(Stage[Settings]):
    inputs = Message

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        return ()

    @abstractmethod
    def send(self) -> None: ...


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("not_there_at_all:X", "No module named 'not_there_at_all'"),
        ("camgraph.pipeline.stage:NotThere", "no attribute 'NotThere'"),
        ("json:dumps", "is no stage: expected a subclass of camgraph.pipeline.stage.Stage or Source"),
        ("camgraph.pipeline.stage:Stage", "does not say what it takes: expected a class attribute `inputs`"),
        (f"{__name__}:NoTuple", "declares `outputs = Event`: expected a tuple of message types, such as `(Frame,)`"),
        (f"{__name__}:NoType", "declares `inputs = 'Frame'`: expected a message type, or port -> message type"),
        (
            f"{__name__}:SettingsNotDeclared",
            "takes OwnSettings, and does not say so: expected `settings_type = OwnSettings`",
        ),
        (
            f"{__name__}:SettingsAreNoClass",
            "declares `settings_type = {}`: expected a subclass of camgraph.pipeline.stage",
        ),
        (
            f"{__name__}:SettingsOfPydantic",
            "declares `settings_type = BaseModel`: expected a subclass of camgraph.pipeline",
        ),
        (f"{__name__}:SettingsWithoutThoseOfItsBase", f"Settings`: expected a subclass of {__name__}.OwnSettings"),
        (f"{__name__}:NoProcess", "does not define `process`"),
        (f"{__name__}:NoFrames", "does not define `frames`"),
        (f"{__name__}:OwnInit", "(too many positional arguments): expected `__init__(self, settings, context)`"),
        (f"{__name__}:NoSend", "does not define `send`"),
        ("camgraph.stages.sinks.delivery.event_sink:EventSink", "does not define `send`"),
        (f"{__name__}:NoPorts", "declares `inputs = {}`: expected a message type, or port -> message type"),
    ],
)
def test_a_stage_that_cannot_be_used_says_whose_it_is_and_why(register: Register, value: str, expected: str) -> None:
    register(("mine", value))
    with pytest.raises(EnvironmentProblem) as caught:
        find_stage("mine")
    assert expected in str(caught.value)
    assert f"the stage `mine` of an unknown distribution ({value})" in str(caught.value)


@pytest.mark.parametrize("module", ["stages.messages", "pipeline.stage", "tools"])
def test_a_name_from_before_camgraph_held_all_is_told(register: Register, module: str) -> None:
    register(("mine", f"{module}:Mine"))
    with pytest.raises(EnvironmentProblem, match=rf"write `camgraph\.{module.split('.', maxsplit=1)[0]}\S*` instead"):
        find_stage("mine")


def test_two_packages_with_the_same_name_are_refused(register: Register) -> None:
    register(("mine", "a:A"), ("mine", "b:B"))
    with pytest.raises(UserError, match="provided by an unknown distribution and an unknown distribution"):
        find_stage("mine")
