"""Policies, depths, windows, tombstones and the outbox of a completed graph."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from camgraph.pipeline.graph import Graph, plan_of
from camgraph.pipeline.plan import EdgePlan

Parse = Callable[..., Graph]

CHAIN = """\
version: 1
cameras:
  front: {CAMERA}
  yard: {CAMERA}
stages:
  count: {use: count_source}
  model: {use: null_model, from: count, batch: {max: 8}, threads: 2}
  twice: {use: double, from: model}
  actions: {use: emit, from: twice}
  log: {use: collect_events, from: actions, with: {path: x, order: ORDER}}
"""


def chain(camera: str = "", order: str = "arrival") -> str:
    return CHAIN.replace("CAMERA", camera).replace("ORDER", order)


def edges(graph: Graph) -> dict[str, EdgePlan]:
    return {edge.name: edge for edge in graph.edges}


def test_files_block(parse: Parse) -> None:
    found = edges(parse(chain()))
    assert {edge.policy for edge in found.values()} == {"block"}
    assert {edge.depth for edge in found.values() if edge.type != "event"} == {2 * 12 + 2 + 1}, "more than the window"
    assert found["actions>outbox"].depth == 6


def test_the_limits_of_the_file_are_those_of_the_run(parse: Parse) -> None:
    plan = plan_of(parse("hang_s: 3\nopen_s: 40\ndrain_s: 5\nreadable_by: owner\n" + chain()))
    assert (plan.hang_s, plan.open_s, plan.drain_s, plan.readable_by) == (3, 40, 5, "owner")
    usual = plan_of(parse(chain()))
    assert (usual.hang_s, usual.open_s, usual.drain_s, usual.readable_by) == (10, 120, 20, "group")


def test_live_cameras_drop_the_oldest_but_never_an_event(parse: Parse) -> None:
    found = edges(parse(chain("live: true")))
    assert {name: (edge.policy, edge.depth) for name, edge in found.items()} == {
        "count>model": ("drop_oldest", 1),
        "model>twice": ("drop_oldest", 1),
        "twice>actions": ("drop_oldest", 1),
        "actions>outbox": ("block", 6),
        "outbox>log": ("block", 64),
    }


def test_an_edge_takes_what_the_graph_says(parse: Parse) -> None:
    text = chain().replace("from: model", "from: {stage: model, depth: 9, policy: drop_newest}")
    found = edges(parse(text.replace("from: actions", "from: {stage: actions, depth: 7}")))
    assert (found["model>twice"].policy, found["model>twice"].depth) == ("drop_newest", 9)
    assert found["twice>actions"].policy == "block"
    assert found["outbox>log"].depth == 7


def test_a_window_keeps_the_busiest_stage_busy(parse: Parse) -> None:
    assert parse(chain()).window == 2 * 12 + 2
    assert parse(chain().replace(", batch: {max: 8}, threads: 2", "")).window == 6


def test_more_workers_mean_fewer_cameras_each(parse: Parse) -> None:
    assert parse(chain().replace("threads: 2", "threads: 2, workers: 2")).window == 2 * 24 + 2


DIAMOND = """\
version: 1
cameras: {a: , b: }
stages:
  count: {use: count_source}
  model: {use: null_model, from: count, batch: {max: 4}}
  thin: {use: thin, from: model}
  both: {use: pair, from: {left: count, right: thin}}
  aside: {use: double, from: both}
  end: {use: collect, from: aside, with: {path: x}}
  other: {use: collect, from: model, with: {path: y}}
"""


def test_edges_that_block_are_deeper_than_the_window(parse: Parse) -> None:
    graph = parse(DIAMOND)
    found = edges(graph)
    assert graph.window == 2 * 4 + 2
    assert {edge.depth for edge in found.values()} == {graph.window + 1}


def test_short_edge_holds_frames_of_long_way_if_dropping(parse: Parse) -> None:
    found = edges(parse(DIAMOND.replace("{a: , b: }", "{a: {live: true}, b: {live: true}}")))
    model, thin = 4 + 2, 1 + 2
    assert found["count>both:left"].depth == 1 + model + thin
    assert found["thin>both:right"].depth == 1


def test_all_ways_to_a_join_tell_of_every_frame(parse: Parse) -> None:
    reported = {name for name, edge in edges(parse(DIAMOND)).items() if edge.tombstones}
    assert reported == {"count>model", "model>thin", "count>both:left", "thin>both:right"}


def test_all_ways_to_a_merge_tell_of_every_frame(parse: Parse) -> None:
    """It takes the frames in their order: without a word on one edge it would wait there for the next one."""
    merge = DIAMOND.replace("pair, from: {left: count, right: thin}", "double, from: [count, thin]")
    reported = {name for name, edge in edges(parse(merge)).items() if edge.tombstones}
    assert reported == {"count>model", "model>thin", "count>both", "thin>both"}


def test_a_sink_in_order_of_time_must_hear_of_every_frame(parse: Parse) -> None:
    assert not any(edge.tombstones for edge in parse(chain()).edges)
    graph = parse(chain(order="time"))
    assert {name for name, edge in edges(graph).items() if edge.tombstones} == {
        "count>model",
        "model>twice",
        "twice>actions",
        "actions>outbox",
    }
    assert graph.completed.ordered_sinks == ("log",)


def test_one_outbox_serves_all_sinks(parse: Parse) -> None:
    text = """\
        version: 1
        cameras: {a: }
        stages:
          all: {use: collect_events, from: events, with: {path: x}}
          count: {use: count_source}
          some: {use: emit, from: count}
          more: {use: emit, from: count}
          one: {use: collect_events, from: more, with: {path: y}}
          two: {use: collect_events, from: [some, {stage: more, depth: 5}], with: {path: z, order: time}}
        """
    plan = plan_of(parse(text, {"XDG_STATE_HOME": "/nowhere"}, name="site"))
    assert plan.graph == "site"
    assert plan.event_filters == {"all": (), "one": ("more",), "two": ("some", "more")}
    assert plan.ordered_sinks == ("two",)
    names = {edge.name for process in plan.processes for edge in process.edges}
    assert {name for name in names if "outbox" in name} == {
        "some>outbox",
        "more>outbox",
        "outbox>all",
        "outbox>one",
        "outbox>two",
    }
    outbox = next(stage for process in plan.processes for stage in process.stages if stage.name == "outbox")
    assert outbox.settings["sinks"] == {"all": [], "one": ["more"], "two": ["some", "more"]}
    assert outbox.settings["ordered"] == ["two"]
    assert outbox.settings["path"].endswith("/camgraph/site/outbox.sqlite")


def test_a_sink_has_room_for_two_of_its_batches(parse: Parse) -> None:
    more = "path: x, order: ORDER}, batch: {max: 100}}"
    graph = parse(CHAIN.replace("path: x, order: ORDER}}", more).replace("CAMERA", "").replace("ORDER", "arrival"))
    assert edges(graph)["outbox>log"].depth == 201
    windows = {stage.name: process.window for process in plan_of(graph).processes for stage in process.stages}
    assert windows["log"] == 200
    assert windows["model"] == graph.window < 100
    given = CHAIN.replace("from: actions, with", "from: {stage: actions, depth: 5}, with")
    assert edges(parse(given.replace("CAMERA", "").replace("ORDER", "arrival")))["outbox>log"].depth == 5


def test_without_events_there_is_no_outbox(parse: Parse) -> None:
    assert "outbox" not in {node.name for node in parse(DIAMOND).completed.nodes}


def test_a_type_may_stand_for_those_that_derive_from_it(parse: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    """The edge carries the type that the sender makes, by which the runtime sorts its outputs."""
    from camgraph_test_stages.messages import Number
    from camgraph_test_stages.numbers import Double

    class Special(Number):
        TYPE = "special"

    monkeypatch.setattr(Double, "outputs", (Special,))
    found = edges(parse(chain()))
    assert (found["model>twice"].type, found["twice>actions"].type) == ("number", "special")


def test_who_takes_any_message_means_what_flows_frame_by_frame(parse: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    from camgraph_test_stages.events import Collect, Emit
    from camgraph_test_stages.messages import Number

    from camgraph.pipeline.messages import Event, Message

    monkeypatch.setattr(Collect, "inputs", Message)
    text = chain() + "  any: {use: collect, from: actions, with: {path: z}}\n"
    assert edges(parse(text))["actions>any"].type == "event"
    monkeypatch.setattr(Emit, "outputs", (Event, Number))
    assert edges(parse(text))["actions>any"].type == "number"


def test_variables_that_are_called_a_secret_are_hidden(parse: Parse) -> None:
    """Those that stages get without a word of them in the settings: their values must be known to whatever hides."""
    environ = {"DOOR_PASSWORD": "hunter2-hunter2", "DOOR_NUMBER": "seventeen"}
    graph = parse("pass_environment: [DOOR_*]\n" + chain(), environ)
    assert "hunter2-hunter2" in plan_of(graph).secrets
    assert "seventeen" not in plan_of(graph).secrets


def test_camera_defaults_give_way_to_the_camera(parse: Parse) -> None:
    graph = parse(chain("frames: 3").replace("cameras:", "camera_defaults: {frames: 9, fps: 25}\ncameras:"))
    assert dict(plan_of(graph).camera_settings["front"]) == {"frames": 3, "fps": 25}
