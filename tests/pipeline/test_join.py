"""The join against a slow reference: whatever the order of arrival between lanes, the same rows come out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.items import Key
from pipeline.join import Join

END, STONE = "end", "stone"


def make() -> Join[str]:
    return Join(["a", "b"], lambda v: v == END, lambda v: v == STONE)


def key(seq: int) -> Key:
    return Key(0, seq, 0)


lanes = st.dictionaries(st.integers(0, 12), st.sampled_from(["x", STONE]), max_size=12)


@given(lanes, lanes, st.randoms(use_true_random=False))
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
