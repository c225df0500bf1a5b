"""The join against a slow reference: the same rows come out whatever the order of arrival. The keys of a merge."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.execution.join import Join, merged_in_order, merged_key
from camgraph.pipeline.items import Key
from camgraph.pipeline.messages import Event
from camgraph.pipeline.plan import EdgePlan
from camgraph.pipeline.testing import stamp

END, STONE = "end", "stone"


def make() -> Join[str]:
    return Join(["a", "b"], lambda v: v == END, lambda v: v == STONE)


def key(seq: int) -> Key:
    return Key(0, seq, 0)


partitions = st.dictionaries(st.integers(0, 12), st.sampled_from(["x", STONE]), max_size=12)


@given(partitions, partitions, st.randoms(use_true_random=False))
def test_rows_do_not_depend_on_the_order_of_arrival(a: dict[int, str], b: dict[int, str], random: object) -> None:
    join = make()
    todo = {"a": [*sorted(a.items()), (99, END)], "b": [*sorted(b.items()), (99, END)]}
    out = []
    while any(todo.values()):
        port = random.choice([port for port, rows in todo.items() if rows])  # type: ignore[attr-defined]
        seq, value = todo[port].pop(0)
        join.push(port, key(seq), value)
        out += [(m.kind, m.key.seq) for m in join.matched()]
    expected = [(_expected(a.get(seq), b.get(seq)), seq) for seq in sorted({*a, *b})]
    assert out == [*expected, ("end", 99)]
    assert len(join) == 0


def _expected(a: str | None, b: str | None) -> str:
    if a is None or b is None:
        return "unpaired"
    return "empty" if STONE in (a, b) else "joined"


def test_nothing_comes_out_before_it_is_settled() -> None:
    join = make()
    join.push("a", key(1), "x")
    join.push("a", key(2), "x")
    assert list(join.matched()) == []
    join.push("b", key(2), "y")
    assert [(m.kind, m.row) for m in join.matched()] == [("unpaired", {"a": "x"}), ("joined", {"a": "x", "b": "y"})]


def test_what_is_passed_over_leaves_a_tombstone_that_says_why() -> None:
    join = make()
    join.push("a", key(1), "x")
    join.push("a", key(2), STONE)
    join.push("b", key(2), "y")
    unpaired, empty = join.matched()
    assert (unpaired.first, unpaired.tombstone(stamp(1)).reason) == ("x", "unpaired")
    assert (empty.tombstone(stamp(2)).reason, empty.tombstone(stamp(2)).stamp) == ("", stamp(2))


def edge(sender: str, *, port: str = "", carries: str = "number") -> EdgePlan:
    return EdgePlan(sender, "sum", port, carries, "block", 4)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2)), unique=True))
def test_merged_keys_are_unique_and_ordered(places: list[tuple[int, int, int]]) -> None:
    edges = [edge("left"), edge("middle"), edge("right")]
    keys = [merged_key(Key(0, seq, part), edges[partition], edges) for seq, part, partition in sorted(places)]
    assert keys == sorted(set(keys))


def test_a_single_edge_and_events_and_ports_keep_their_keys() -> None:
    for edges in (
        [edge("left")],
        [edge("left", carries=Event.TYPE), edge("right", carries=Event.TYPE)],
        [edge("left", port="a"), edge("right", port="b")],
    ):
        assert not merged_in_order(edges)
        assert merged_key(Key(1, 2, 3), edges[-1], edges) == Key(1, 2, 3)
