"""The sinks that lead to a program: where they are put into its graph, and which wishes cannot be met."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.graph.definition import GraphFile
from camgraph.pipeline.plan import ProcessPlan, RunPlan, StagePlan
from camgraph.readers import FRAMES_KIND, KINDS, TRACKS_KIND, USES, Wishes, addressed

TRACKING: dict[str, Any] = {
    "capture": {"use": "capture"},
    "prepare": {"use": "preprocess", "from": "capture"},
    "infer": {"use": "infer", "from": "prepare", "with": {"model": "m.onnx"}},
    "people": {"use": "decode", "from": "infer"},
    "tracks": {"use": "track", "from": "people"},
}
RULES = {"actions": {"use": "rules", "from": "tracks", "with": {"file": "r.yaml"}}}
LOG = {"log": {"use": "sink_jsonl", "from": "events", "with": {"path": "e.jsonl"}}}


def graph(**stages: Any) -> GraphFile:
    text = yaml.safe_dump(
        {"version": 1, "name": "g", "cameras": {"a": {"url": "a.mp4"}}, "stages": stages}, sort_keys=False
    )
    return GraphFile.model_validate(yaml.safe_load(text))


def added(before: GraphFile, *kinds: str, **wishes: Any) -> dict[str, tuple[str, Any]]:
    """Return the stages that were added: name -> (use, from)."""
    after = Wishes(frozenset(kinds), **wishes).amend(before)
    new = after.stages.keys() - before.stages.keys()
    return {name: (after.stages[name].use, after.stages[name].from_) for name in new}


def test_events_are_read_from_all_stages_that_make_them() -> None:
    assert added(graph(**TRACKING, **RULES, **LOG), "events") == {"python_events": ("sink_api_events", "events")}


def test_frames_get_their_source_and_the_tracks_drawn_on_them() -> None:
    ends = {"frames": "capture", "tracks": "tracks"}
    assert added(graph(**TRACKING), FRAMES_KIND)["python_frames"] == ("sink_api_frames", ends)


def test_settings_of_frames_are_those_that_were_asked_for() -> None:
    after = Wishes(frozenset({FRAMES_KIND}), annotated=False, max_width=320).amend(graph(**TRACKING))
    assert after.stages["python_frames"].with_ == {"annotated": False, "max_width": 320, "trail_s": 0}
    after = Wishes(frozenset({FRAMES_KIND})).amend(graph(**TRACKING))
    assert after.stages["python_frames"].with_ == {"annotated": True, "trail_s": 0}


def test_events_without_a_reader_get_a_sink() -> None:
    assert added(graph(**TRACKING, **RULES), TRACKS_KIND) == {
        "python_tracks": ("sink_api_tracks", "tracks"),
        "python_unread": ("sink_null", "actions"),
    }


def test_a_name_that_the_graph_has_already_is_left_to_it() -> None:
    taken = {"python_tracks": {"use": "sink_null", "from": "tracks"}}
    assert added(graph(**TRACKING, **taken), TRACKS_KIND) == {"python_tracks_2": ("sink_api_tracks", "tracks")}


def test_one_of_several_tracks_must_be_named() -> None:
    two = graph(**TRACKING, others={"use": "track", "from": "people"})
    with pytest.raises(UserError, match=r"several stages make tracks: .* one of: tracks, others"):
        added(two, TRACKS_KIND)
    assert added(two, TRACKS_KIND, tracks_of="others")["python_tracks"] == ("sink_api_tracks", "others")


@pytest.mark.parametrize(
    ("stages", "kind", "wishes", "words"),
    [
        (TRACKING, "events", {}, "this graph makes no events: add a stage such as `rules`"),
        ({"capture": {"use": "capture"}}, TRACKS_KIND, {}, "no stage of this graph makes tracks: add one such as"),
        (TRACKING, TRACKS_KIND, {"tracks_of": "people"}, "`people` makes no tracks; expected one of: tracks"),
    ],
)
def test_a_wish_that_the_graph_cannot_meet_names_the_way_out(
    stages: dict[str, Any], kind: str, wishes: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        added(graph(**stages), kind, **wishes)


def test_a_stage_that_nobody_knows_is_left_to_the_check() -> None:
    unknown = {"mine": {"use": "of_a_package_that_is_not_there", "from": "capture"}}
    assert added(graph(capture={"use": "capture"}, **unknown), "events") == {
        "python_events": ("sink_api_events", "events")
    }


def test_a_graph_may_be_run_in_this_process() -> None:
    assert Wishes(in_process=True).amend(graph(**TRACKING)).processes == "one"
    assert Wishes().amend(graph(**TRACKING)).processes == graph(**TRACKING).processes


def test_only_the_sinks_of_the_program_get_its_addresses() -> None:
    stages = (StagePlan("log", "sink_jsonl", {"path": "e"}), StagePlan("python_events", USES["events"], {}))
    process = ProcessPlan("sinks.0", stages, ("a",), 1, (), {})
    plan = RunPlan("g", "/g", (process,), {"a": {}})
    [after] = addressed(plan, {kind: Path(f"/run/api.{kind[0]}") for kind in KINDS}).processes
    assert [stage.settings for stage in after.stages] == [{"path": "e"}, {"address": "/run/api.e"}]
