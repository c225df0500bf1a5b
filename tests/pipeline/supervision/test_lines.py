"""What a process writes, as lines: none is endless, and none shows half of a password where it is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.supervision.lines import LONGEST_LINE, Allowance, Lines
from camgraph.pipeline.system import redaction
from camgraph.pipeline.system.redaction import redact_urls

SECRET = "S3cretPassw0rd"


@given(st.lists(st.binary(max_size=30), max_size=10))
def test_how_it_comes_in_pieces_does_not_matter(pieces: list[bytes]) -> None:
    lines = Lines()
    come = [line for piece in pieces for line in lines.take(piece)] + lines.last()
    whole = b"".join(pieces).split(b"\n")
    kept = [line.rstrip(b"\r").decode(errors="backslashreplace") for line in whole]
    assert come == [line for line in kept if line]


def test_what_has_no_end_comes_last() -> None:
    lines = Lines()
    assert lines.take(b"one\r\n\ntw") == ["one"]
    assert lines.take(b"o") == []
    assert lines.last() == ["two"]
    assert lines.last() == []


def test_what_is_no_text_is_escaped() -> None:
    assert Lines().take(b"\xff\n") == [r"\xff"]


def test_overlong_line_is_truncated() -> None:
    lines = Lines()
    assert lines.take(b"x" * 100_000) == []
    assert lines.take(b"x" * 100_000) == []
    long, after = lines.take(b"x\nafter\n")
    assert long == f"{'x' * LONGEST_LINE} ..."
    assert after == "after"


@pytest.mark.parametrize("letter", ["x", "\N{GRINNING FACE}"])
@pytest.mark.parametrize("line", ["rtsp://viewer:{}@10.0.0.1/x", "the password is {}", "http://h/x?token={}"])
@pytest.mark.slow
def test_no_half_of_a_password_is_shown_wherever_a_line_is_cut(
    monkeypatch: pytest.MonkeyPatch, line: str, letter: str
) -> None:
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setattr(redaction, "_any_known", None)
    if "password" in line:
        redaction.hide([SECRET])
    message = f"{line.format(SECRET)} "
    for before in (*range(LONGEST_LINE - 60, LONGEST_LINE + 5), *range(2 * LONGEST_LINE - 60, 2 * LONGEST_LINE)):
        padding = letter * ((before - 1) // len(letter.encode())) + " "
        [shown] = Lines().take(f"{padding}{message * 40}{'z ' * 9000}\n".encode())
        shown = redact_urls(shown)
        assert not [end for end in range(3, len(SECRET)) if shown.removesuffix(" ...").endswith(SECRET[:end])]
        assert SECRET not in shown


def test_an_allowance_is_so_many_at_once_and_so_many_a_second() -> None:
    allowance = Allowance(at_once=2, per_s=10.0)
    assert [allowance.takes(1.0) for _ in range(3)] == [True, True, False]
    assert [allowance.takes(1.1) for _ in range(2)] == [True, False]
    assert allowance.take_left_out() == 2
    assert allowance.take_left_out() == 0
