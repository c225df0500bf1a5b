"""`${NAME}` in strings, and keeping its value to ourselves."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.graph.variables import substitute
from camgraph.pipeline.graph.yaml_source import load

printable = st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)


@given(printable)
def test_a_password_of_any_characters_fits_into_a_url(password: str) -> None:
    result = substitute("rtsp://viewer:${PW}@10.0.0.1:554/main?x=1", {"PW": password})
    parts = urlsplit(result.text)
    assert unquote(parts.password or "") == password
    assert (parts.hostname, parts.port, parts.path, parts.query) == ("10.0.0.1", 554, "/main", "x=1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${A}", "a/b@c"),
        ("x ${A} y ${A}", "x a/b@c y a/b@c"),
        ("rtsp://${A}:${A}@host/${A}", "rtsp://a%2Fb%40c:a%2Fb%40c@host/a/b@c"),
        ("rtspsrc location=rtsp://u:${A}@host ! x", "rtspsrc location=rtsp://u:a%2Fb%40c@host ! x"),
        ("rtsp://u@corp:${A}@host/", "rtsp://u@corp:a%2Fb%40c@host/"),
        ("http://host/${A}", "http://host/a/b@c"),
        ("$${A} $A", "${A} $A"),
        ("", ""),
    ],
)
def test_where_a_value_goes(text: str, expected: str) -> None:
    assert substitute(text, {"A": "a/b@c"}).text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "${NO}",
            "the environment variable NO is not set: set it, name a file that does (--env-file), or write "
            "${secret:NO} for a secret of this name, $${NO} for the text itself",
        ),
        ("${1x}", "`${` without a name and `}`: expected ${NAME}; write $${ for the characters themselves"),
        ("${A", "`${` without a name and `}`: expected ${NAME}; write $${ for the characters themselves"),
        (
            "${BROKEN}",
            "the environment variable BROKEN contains characters that are not text: expected printable UTF-8",
        ),
        ("${LINES}", "the environment variable LINES contains characters that are not text: expected printable UTF-8"),
    ],
)
def test_what_cannot_be_put_in_stays_and_is_told(text: str, expected: str) -> None:
    result = substitute(text, {"A": "1", "BROKEN": "\udc80", "LINES": "a\nb"})
    assert result.problems == (expected,)
    assert result.text == text


def test_a_complaint_never_shows_a_value() -> None:
    source = load("url: rtsp://u:${PW}@h\nn: ${N}\n", "f", {"PW": "sp/cret'", "N": "7"})
    for spelling in ("sp/cret'", "sp%2Fcret%27", "sp/cret%27", repr("sp/cret'")[1:-1]):
        assert source.redact(("other",), f"cannot open {spelling}!") == "cannot open ${PW}!"
    assert source.redact(("n",), "got 7") == "got ${N}"
    assert source.redact(("other",), "expected 7") == "expected 7"
    assert source.shown(("url",), source.data["url"]) == "rtsp://***@h"


def test_without_an_environment_nothing_is_replaced() -> None:
    assert load("a: ${NO}", "f").data == {"a": "${NO}"}


def test_a_long_text_is_read_once() -> None:
    """Where each letter began a search for the end of a scheme, this would take hours."""
    assert substitute("${X}" + "x" * 1_000_000, {"X": "y"}).text == "y" + "x" * 1_000_000


def test_missing_variable_is_reported_once_with_lines() -> None:
    text = "a: ${NO}\nb: ${NO}\nc: [x, '${NO}', '${NO}']\nd: ${WHY}\n"
    first, second = map(str, load(text, "f", {}).problems)
    assert first.startswith("f:1:4: the environment variable NO is not set: ")
    assert first.endswith("; also in lines 2, 3")
    assert second.startswith("f:4:4: the environment variable WHY is not set: ")
    assert "also" not in second


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("${SITE}", False),
        ("rtsp://${SITE}@h", False),
        ("rtsp://${SITE}:x@h", False),
        ("rtsp://u:${SITE}@h", True),
        ("http://h/${API_KEY}", True),
        ("${DB_PASSWORD_2}", True),
        ("${TOKEN}", True),
        ("${PASSAGE}", False),
        ("${secret:SITE}", True),
    ],
)
def test_which_values_are_secret(text: str, *, hidden: bool) -> None:
    environ = dict.fromkeys(("SITE", "API_KEY", "DB_PASSWORD_2", "TOKEN", "PASSAGE"), "value")
    assert bool(substitute(text, environ).hidden) is hidden
