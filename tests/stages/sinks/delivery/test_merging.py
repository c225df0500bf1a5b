from __future__ import annotations

import json

import pytest
from camgraph_test_stages.incident_views import incident
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.merging import Merging, _whole_time

MINUTE = 60 * 10**9


def fate(merging: Merging, view: EventView, phases: tuple[str, ...] = ("start", "update", "end", "single")) -> str:
    """What is sent of an event: `phase of incident`, or why it is left out. `phases`: those that a filter wants."""
    decision = merging.decide(view)
    told = decision.why
    if decision.what == "send":
        told = f"{view.phase} of {view.incident}"
    elif decision.what == "join":
        data = merging.joined(view, decision)["data"]
        told = f"{data['phase']} of {data['incident']} with {'+'.join(one['incident'] for one in data['merged'])}"
    is_sent = decision.what != "leave_out" and decision.phase in phases
    merging.done(view, decision, is_sent=is_sent)
    return told if is_sent else decision.why or "filtered"


def test_incidents_that_overlap_are_sent_as_one() -> None:
    merging = Merging(MINUTE, 0)
    steps = [
        (incident("a", "start", at_s=0), "start of a"),
        (incident("b", "start", at_s=5, rule="lying"), "update of a with a+b"),
        (incident("a", "update", at_s=6), "update of a"),
        (incident("a", "end", at_s=10), "merged"),
        (incident("x", "start", at_s=11, camera="other"), "start of x"),
        (incident("b", "end", at_s=20), "end of a with a+b"),
        (incident("c", "single", at_s=70), "update of a with a+b+c"),
        (incident("d", "start", at_s=200), "start of d"),
        (incident("d", "end", at_s=201), "end of d"),
    ]
    assert [fate(merging, view) for view, _ in steps] == [told for _, told in steps]


def test_an_end_that_never_came_holds_a_group_open_for_a_day() -> None:
    merging, hour_s = Merging(MINUTE, 0), 3600
    steps = [
        (incident("a", "start", at_s=0), "start of a"),
        (incident("b", "start", at_s=23 * hour_s), "update of a with a+b"),
        (incident("b", "end", at_s=23 * hour_s + 1), "merged"),
        (incident("c", "start", at_s=48 * hour_s), "start of c"),
        (incident("c", "end", at_s=48 * hour_s + 1), "end of c"),
        (incident("a", "end", at_s=49 * hour_s), "end of a"),
    ]
    assert [fate(merging, view) for view, _ in steps] == [told for _, told in steps]


def test_a_clock_that_is_set_back_merges_nothing_with_what_was() -> None:
    merging = Merging(MINUTE, MINUTE)
    day_s = 86_400
    steps = [
        (incident("a", "start", at_s=day_s), "start of a"),
        (incident("a", "end", at_s=day_s + 2), "end of a"),
        (incident("b", "start", at_s=0), "start of b"),
        (incident("b", "end", at_s=1), "end of b"),
    ]
    assert [fate(merging, view) for view, _ in steps] == [told for _, told in steps]


def test_the_merged_end_tells_the_whole_time() -> None:
    merging = Merging(MINUTE, 0)
    for view in (incident("a", "start"), incident("b", "start", at_s=5), incident("a", "end", at_s=10)):
        fate(merging, view)
    last = incident("b", "end", at_s=20.5, end_time="2026-11-23T12:00:20.500Z", duration_s=15.5)
    body = merging.joined(last, merging.decide(last))
    assert body["type"] == "camgraph.incident.end"
    assert (body["data"]["start_time"], body["data"]["duration_s"]) == ("2026-11-23T12:00:00.000Z", 20.5)


def test_a_cooldown_drops_incidents_of_the_same_rule_and_camera() -> None:
    merging = Merging(0, MINUTE)
    steps = [
        (incident("a", "start", at_s=0), "start of a"),
        (incident("b", "start", at_s=30), "cooldown"),
        (incident("c", "start", at_s=31, camera="other"), "start of c"),
        (incident("d", "start", at_s=32, rule="lying"), "start of d"),
        (incident("a", "end", at_s=40), "end of a"),
        (incident("b", "end", at_s=90), "cooldown"),
        (incident("e", "start", at_s=61), "start of e"),
    ]
    assert [fate(merging, view) for view, _ in steps] == [told for _, told in steps]


def camera_event(name: str, phase: str, at_s: float) -> EventView:
    view = incident(name, phase, at_s=at_s)
    kind = "camgraph.camera.lost" if phase == "start" else "camgraph.camera.back"
    return EventView(view.event, {**view.body, "type": kind, "data": {**view.data, "rule": None}})


def test_a_cooldown_drops_repeated_losses_of_a_camera() -> None:
    merging = Merging(MINUTE, MINUTE)
    steps = [
        (camera_event("a", "start", 0), "start of a"),
        (incident("fall", "start", at_s=1), "start of fall"),
        (camera_event("a", "end", 5), "end of a"),
        (camera_event("b", "start", 20), "cooldown"),
        (camera_event("b", "end", 30), "cooldown"),
        (camera_event("c", "start", 61), "start of c"),
    ]
    assert [fate(merging, view) for view, _ in steps] == [told for _, told in steps]


def test_what_could_not_be_sent_consumes_nothing() -> None:
    merging = Merging(0, MINUTE)
    assert merging.decide(incident("a", "start")).what == "send"
    assert merging.decide(incident("b", "start", at_s=1)).what == "send"


def test_a_beginning_that_no_filter_wants_starts_no_cooldown() -> None:
    merging = Merging(0, MINUTE)
    steps = [
        (incident("a", "start", at_s=0), "filtered"),
        (incident("b", "single", at_s=5), "single of b"),
        (incident("c", "single", at_s=10), "cooldown"),
    ]
    assert [fate(merging, view, ("single",)) for view, _ in steps] == [told for _, told in steps]


def test_a_cooldown_also_holds_if_only_ends_are_sent() -> None:
    merging = Merging(0, MINUTE)
    steps = [
        (incident("a", "start", at_s=0), "filtered"),
        (incident("a", "end", at_s=10), "end of a"),
        (incident("b", "start", at_s=60), "cooldown"),
        (incident("b", "end", at_s=80), "cooldown"),
        (incident("c", "start", at_s=90), "filtered"),
        (incident("c", "end", at_s=91), "end of c"),
    ]
    assert [fate(merging, view, ("end",)) for view, _ in steps] == [told for _, told in steps]


def test_the_first_beginning_that_is_sent_founds_the_group() -> None:
    merging = Merging(MINUTE, 0)
    steps = [
        (incident("a", "start", at_s=0), "filtered"),
        (incident("b", "single", at_s=5), "single of b"),
        (incident("c", "single", at_s=6), "filtered"),  # it would be an update of b
        (incident("a", "end", at_s=7), "filtered"),
    ]
    assert [fate(merging, view, ("single",)) for view, _ in steps] == [told for _, told in steps]


def test_one_end_is_sent_for_all_if_only_ends_are_wanted() -> None:
    merging = Merging(MINUTE, 0)
    steps = [
        (incident("a", "start", at_s=0), "filtered"),
        (incident("b", "start", at_s=5), "filtered"),
        (incident("a", "end", at_s=7), "merged"),
        (incident("b", "end", at_s=9), "end of a with a+b"),
    ]
    assert [fate(merging, view, ("end",)) for view, _ in steps] == [told for _, told in steps]


def test_an_event_that_comes_again_has_the_same_fate() -> None:
    merging = Merging(MINUTE, MINUTE)
    events = [
        incident("a", "start", at_s=0),
        incident("b", "start", at_s=1, rule="lying"),
        incident("a", "end", at_s=3),
        incident("b", "end", at_s=4),
    ]
    first = [fate(merging, view) for view in events]
    restarted = Merging(MINUTE, MINUTE)
    restarted.take(json.loads(json.dumps(merging.state())))
    assert fate(restarted, events[3]) == first[3] == "end of a with a+b"
    assert fate(restarted, events[0]) == first[0]


@given(
    steps=st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["start", "end", "update"]), st.integers(0, 90))),
    restart=st.integers(0, 20),
)
def test_each_start_that_is_sent_has_an_end(steps: list[tuple[str, str, int]], restart: int) -> None:
    """Whatever the order: once all incidents have ended, so has each one that a reader has seen begin."""
    merging, seen, at, living = Merging(MINUTE, 0), dict[str, str](), 0, list[str]()
    numbered = [(f"{name}{number}", phase, wait) for number, (name, phase, wait) in enumerate(steps)]
    for number, (name, phase, wait) in enumerate(numbered):
        at += wait
        if phase == "start":
            living.append(name)
        elif not living:
            continue
        whose = living[-1] if phase == "start" else living.pop(0) if phase == "end" else living[0]
        note(fate(merging, incident(whose, phase, at_s=at)), seen)
        if number == restart:
            state, merging = merging.state(), Merging(MINUTE, 0)
            merging.take(json.loads(json.dumps(state)))
    for name in living:
        at += 1
        note(fate(merging, incident(name, "end", at_s=at)), seen)
    assert set(seen.values()) <= {"end"}


def note(told: str, seen: dict[str, str]) -> None:
    phase, _, incident = told.partition(" of ")
    if incident:
        seen[incident.split(" ")[0]] = phase


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-11-22T10:00:00", "2026-11-22T10:00:00Z"),
        ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
        ("nan", "inf"),
    ],
)
def test_odd_times_have_no_effect_on_merging(start: str, end: str) -> None:
    assert _whole_time(start, end).get("duration_s", 0.0) >= 0
