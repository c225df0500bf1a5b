"""The order of stages, and the mistakes between them that need the whole graph."""

from __future__ import annotations

from collections.abc import Callable
from graphlib import CycleError

import pytest

from camgraph.pipeline.graph.arrows import Arrow
from camgraph.pipeline.graph.structure import order_of

Mistakes = Callable[..., list[str]]
HEAD = """
version: 1
name: g
cameras: {a: {frames: 3}}
stages:
  src: {use: count_source}
"""


def arrows(*pairs: str) -> list[Arrow]:
    """`a>b`: b reads from a."""
    return [Arrow(*pair.split(">"), "", ("stages",)) for pair in pairs]


def test_readers_follow_their_senders_and_all_else_stays() -> None:
    assert order_of("abcd", []) == list("abcd")
    assert order_of("abcd", arrows("d>a")) == list("bcda")
    assert order_of("abcd", arrows("c>b", "b>a")) == list("cbad")
    assert order_of("ab", arrows("events>a", "b>a")) == ["b", "a"], "the sender of all events is no stage"


def test_a_loop_has_no_order() -> None:
    with pytest.raises(CycleError):
        order_of("abc", arrows("a>b", "b>c", "c>a"))


def test_a_loop_is_reported_once_where_it_begins(mistakes: Mistakes) -> None:
    [found] = mistakes(
        HEAD
        + """
  one: {use: double, from: [src, three]}
  two: {use: double, from: one}
  three: {use: double, from: two}
  out: {use: collect, from: three, with: {path: out}}
"""
    )
    assert "a loop: one > two > three > one" in found


def test_two_loops_are_two_mistakes(mistakes: Mistakes) -> None:
    found = mistakes(
        HEAD
        + """
  one: {use: double, from: [src, one]}
  two: {use: double, from: [one, two]}
  out: {use: collect, from: two, with: {path: out}}
"""
    )
    assert [line.partition("a loop: ")[2].partition(";")[0] for line in found] == ["one > one", "two > two"]


def test_a_stage_that_nobody_reads_is_named(mistakes: Mistakes) -> None:
    [found] = mistakes(HEAD + "  one: {use: double, from: src}\n")
    assert "one: no stage reads its Number" in found


def test_of_a_mistyped_name_the_intended_stage_counts_as_read(mistakes: Mistakes) -> None:
    [found] = mistakes(
        HEAD + "  doubled: {use: double, from: src}\n  out: {use: collect, from: doubledd, with: {path: out}}\n"
    )
    assert "did you mean `doubled`" in found


def test_a_graph_has_one_source(mistakes: Mistakes) -> None:
    [found] = mistakes(
        HEAD + "  other: {use: count_source}\n  out: {use: collect, from: [src, other], with: {path: out}}\n"
    )
    assert "src is the source already" in found
    assert any(
        "no stage is a source" in line for line in mistakes("version: 1\nname: g\ncameras: {a: {}}\nstages: {}\n")
    )


def test_events_and_a_stage_that_makes_them_are_not_read_twice(mistakes: Mistakes) -> None:
    [found] = mistakes(
        HEAD + "  emit: {use: emit, from: src}\n  out: {use: collect_events, from: [events, emit], with: {path: out}}\n"
    )
    assert "`events` means emit as well: keep one of them" in found
