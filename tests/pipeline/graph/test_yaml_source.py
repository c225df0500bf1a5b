"""Values, places and traps of YAML."""

from __future__ import annotations

import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph.yaml_reader import MAX_DEPTH
from camgraph.pipeline.graph.yaml_source import load
from camgraph.pipeline.system.names import nfc

names = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)
scalars = st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False) | names
keys = names.map(nfc)
plain = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))


def problems(text: str) -> list[str]:
    return [f"{p.line}:{p.column}: {p.text}" for p in load(text, "f").problems]


def refusal(text: str) -> str:
    with pytest.raises(GraphError) as caught:
        load(text, "f")
    return str(caught.value)


@given(st.dictionaries(keys, plain, max_size=4))
def test_what_is_written_is_read(data: dict[str, object]) -> None:
    read = load(yaml.safe_dump(data, allow_unicode=True), "f")
    assert read.data == data
    assert read.problems == ()


def test_a_key_in_two_spellings_stands_twice() -> None:
    text = "cameras:\n  S\u00fcd: {}\n  Su\u0308d: {}\n"
    assert list(load(text.replace("S\u00fcd", "Nord"), "f").data["cameras"]) == ["Nord", "S\u00fcd"]
    assert problems(text) == ["3:3: the key `S\u00fcd` appears twice, first in line 2: remove one of them"]


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        problems = load(text, "f", {}).problems
    except GraphError as error:
        problems = error.problems[:1]
    assert all(problem.line >= 1 and problem.column >= 1 for problem in problems)


def test_every_key_and_value_has_a_place() -> None:
    source = load("a: 1\nb:\n  - x\n  - {c:   2}\n", "f")
    assert source.position(("a",)) == (1, 4)
    assert source.position(("b",)) == (3, 3)
    assert source.key_position(("b",)) == (2, 1)
    assert source.position(("b", 1, "c")) == (4, 11)
    assert source.key_position(("b", 1, "c")) == (4, 6)


def test_what_is_not_there_is_placed_at_what_is_around_it() -> None:
    source = load("a:\n  b: 1\n", "f")
    assert source.position(("a", "missing", "deeper")) == source.position(("a",)) == (2, 3)
    assert source.key_position(("a", "missing")) == (1, 1)


def test_columns_count_characters() -> None:
    assert load("{é: 1, ü: on}", "f").problems[0].column == 11


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: on", '1:4: `on` is a boolean to some readers of YAML: write true, false, or "on" in quotes'),
        ("a: [1, No]", '1:8: `No` is a boolean to some readers of YAML: write true, false, or "No" in quotes'),
        ("on: 1", '1:1: the key `on` is a boolean in YAML: write "on" with quotes'),
        ("true: 1", '1:1: the key `true` is a boolean in YAML: write "true" with quotes'),
        ("a: 10:30", '1:4: `10:30` is a number to base 60 in YAML: write "10:30" with quotes'),
        ("a: 1:30.5", '1:4: `1:30.5` is a number to base 60 in YAML: write "1:30.5" with quotes'),
        ("a: 0640", '1:4: `0640` is octal in YAML: write 416 for the number, "0640" for text'),
        ("a: 1\na: 2", "2:1: the key `a` appears twice, first in line 1: remove one of them"),
        ("a: &x [*x]", "1:4: an anchor that contains its own alias has no end: remove the alias"),
        ("a: &x {<<: *x}", "1:4: `<<` takes a mapping or a list of mappings: expected an alias such as *name"),
        ("? [1]\n: 2", "1:3: a key must be a name, got a list, a mapping or nothing"),
        ("? \n: 2", "1:2: a key must be a name, got a list, a mapping or nothing"),
        ("a: !python/object:os.system 1", "1:4: the tag !python/object:os.system is not supported: remove it"),
        ("a: !!set {b}", "1:4: the tag !!set is not supported: remove it"),
        ("a: !!int zip", "1:4: `zip` is no number: remove the tag before it, or write a number"),
        (f"a: {'9' * 400}", "1:4: a number of 400 digits: at most 300 are accepted"),
    ],
)
def test_traps(text: str, expected: str) -> None:
    assert problems(text) == [expected]


def test_what_is_meant_as_text_or_switch_is_no_trap() -> None:
    source = load("a: 'on'\nb: !!str yes\nc: true\nd: False\n5: x\ne: 2024-01-02\nf: 0\n", "f")
    assert source.problems == ()
    assert source.data == {"a": "on", "b": "yes", "c": True, "d": False, "5": "x", "e": "2024-01-02", "f": 0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "f:1:1: the file is empty"),
        ("# nothing\n", "f:1:1: the file is empty"),
        (
            "a: b: c",
            "f:1:5: not YAML: mapping values are not allowed in this context; put text that holds `: ` in quotes",
        ),
        ("a:\n\t- b", "f:2:1: not YAML: "),
        ("a: [", "f:2:1: not YAML: "),
        ("a: *x", "f:1:4: not YAML: found undefined alias"),
        ("a: 1\n---\nb: 2", "f:2:1: not YAML: expected a single document"),
        ("a: \x07", "f:1:4: the character U+0007 is not text"),
        ("[" * 100_000, f"f:1:{MAX_DEPTH + 1}: more than {MAX_DEPTH} levels deep"),
        ("- " * 100_000, f"f:1:{2 * MAX_DEPTH + 1}: more than {MAX_DEPTH} levels deep"),
        ("a" * (4 << 20) + "a", "f: 4194305 characters"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_place(text: str, expected: str) -> None:
    assert refusal(text).startswith(expected)


def test_an_alias_is_a_copy_and_a_merge_gives_way() -> None:
    source = load("a: &d {x: 1, y: 2}\nb: *d\nc: {<<: *d, y: 3}\n", "f")
    assert source.data == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 2}, "c": {"y": 3, "x": 1}}


@pytest.mark.parametrize("line", ["[{}]", "{{<<: [{}]}}"])
@pytest.mark.slow
def test_aliases_that_multiply_are_bounded(line: str) -> None:
    """A file of 600 bytes that would mean a billion values, or a billion merges."""
    levels = ["l0: &l0 {x: 1}"]
    levels += [f"l{n}: &l{n} " + line.format(",".join([f"*l{n - 1}"] * 10)) for n in range(1, 10)]
    started = time.monotonic()
    assert "more than 100,000 values" in refusal("\n".join(levels))
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("line", ["[*l{0}]", "{{a: *l{0}}}", "{{<<: *l{0}, k{0}: 1}}"])
def test_aliases_that_nest_are_bounded(line: str) -> None:
    """No line is deep, and together they are deeper than Python can call itself."""
    levels = ["l0: &l0 {x: 1}"] + [f"l{n}: &l{n} " + line.format(n - 1) for n in range(1, 500)]
    assert f"more than {MAX_DEPTH} levels deep, aliases counted" in refusal("\n".join(levels))


def test_aliases_of_long_texts_are_bounded() -> None:
    """A variable in a text that is used often would be put in as often."""
    text = f"a: &a '${{X}}{'x' * 100_000}'\nb: [{', '.join(['*a'] * 10_000)}]\n"
    with pytest.raises(GraphError, match=r"^f:1:4: more than 4,194,304 characters, aliases counted"):
        load(text, "f", {"X": "y"})
