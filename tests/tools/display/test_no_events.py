from __future__ import annotations

from typing import Any

import pytest

from camgraph.pipeline.monitoring.run_status import RunStatus, Totals
from camgraph.pipeline.plan import ProcessPlan, RunPlan, StagePlan
from camgraph.tools.display.no_events import why_no_events


def plan(*, file: str = "g.yaml", uses: tuple[str, ...] = ("preprocess", "track", "rules"), **picture: Any) -> RunPlan:
    stages = tuple(StagePlan(f"my-{use}", use, picture if use == "preprocess" else {}) for use in uses)
    return RunPlan("g", "/", (ProcessPlan("u.0", stages, ("a",), 1, (), {}),), {"a": {}}, file=file)


def status(frames: int = 10, actions: dict[str, int] | None = None, **counts: int) -> RunStatus:
    rows = [(name.replace("__", "."), "a", n) for name, n in counts.items()]
    return RunStatus(totals=Totals(frames=frames), actions={"a": actions or {}}, counts=rows)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({}, "nobody was found in 10 frames: "),
        ({"people": 0}, "nobody was found in 10 frames: "),
        ({"people": 7, "people_followed": 0}, "people were found (7 in 10 frames), but nobody surely enough"),
        ({"people": 7, "people_followed": 5}, "no rule of `my-rules` could be judged in any frame"),
        ({"people": 7, "people_followed": 5, "judged__hands_up": 1}, "no rule came true for as long as its `for` asks"),
    ],
)
def test_the_first_thing_that_was_missing_is_told(counts: dict[str, int], message: str) -> None:
    why = why_no_events(status(**counts), plan())
    assert message in why
    assert why.endswith("; more: camgraph help no_events")


def test_what_camgraph_tells_of_itself_is_no_event_of_people() -> None:
    assert why_no_events(status(actions={"camgraph.camera.lost": 2, "camgraph.stage.restarted": 1}), plan())
    assert not why_no_events(status(actions={"camgraph.camera.lost": 2, "hands_up": 1}), plan())


def test_where_nothing_is_to_be_told_nothing_is() -> None:
    assert not why_no_events(status(frames=0), plan())
    assert not why_no_events(status(), plan(uses=("preprocess",)))
    assert not why_no_events(status(people=3, people_followed=3), plan(uses=("track",)))


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        ({"size": "native"}, "made pictures of `size: native`: remove that, or write `size: auto`"),
        ({"size": "auto", "max_side": 768}, "made pictures of `max_side: 768`: try another `max_side` (256 for"),
        ({"size": "auto"}, "made pictures of `size: auto`: try another `max_side` (256 for"),
        ({"size": [640, 640]}, "see whether people are large enough in the model's picture"),
    ],
)
def test_picture_size_is_in_terms_of_the_graph(picture: dict[str, Any], message: str) -> None:
    assert message in why_no_events(status(), plan(**picture))


def test_without_a_graph_file_it_is_an_option() -> None:
    assert "try another `--size` (256" in why_no_events(status(), plan(file="", size="native", max_side=768))
