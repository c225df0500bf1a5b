"""No secret of an address is ever shown, wherever the address stands."""

from __future__ import annotations

import base64
import json
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
import structlog
from hypothesis import example, given
from hypothesis import strategies as st

from camgraph.pipeline.monitoring.metrics import reason_line
from camgraph.pipeline.monitoring.outcome import Outcome
from camgraph.pipeline.supervision.control import ControlServer
from camgraph.pipeline.system import redaction
from camgraph.pipeline.system.logs import log_to_stderr
from camgraph.pipeline.system.redaction import redact_url, redact_urls, redacted_beginning, redacted_end, redacted_line
from camgraph.pipeline.system.side_link import follow

SECRET = "Zq9"
"""Part of each password; no other text has it."""


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("rtsp://10.0.0.11/main", "rtsp://10.0.0.11/main"),
        ("rtsp://10.0.0.11:554/main", "rtsp://10.0.0.11:554/main"),
        ("rtsp://[fe80::1]:554/main", "rtsp://[fe80::1]:554/main"),
        ("rtsp://viewer:geheim@10.0.0.11:554/main", "rtsp://***@10.0.0.11:554/main"),
        ("rtsp://viewer@10.0.0.11/main", "rtsp://***@10.0.0.11/main"),
        ("rtsp://:geheim@10.0.0.11/main", "rtsp://***@10.0.0.11/main"),
        ("rtsp://viewer:ge@he:im@10.0.0.11/main", "rtsp://***@10.0.0.11/main"),
        ("rtsp://viewer:ge/heim@10.0.0.11/main", "rtsp://***"),
        ("rtsp://viewer:12/geheim@10.0.0.11/main", "rtsp://***"),
        ("rtsp://viewer:ge#heim@10.0.0.11/main", "rtsp://***"),
        ("rtsp://viewer:geheim", "rtsp://***"),
        ("http://cam/video?token=geheim&x=1", "http://cam/video?***"),
        ("http://cam/video?geheim", "http://cam/video?***"),
        ("http://cam/video?token=ge@heim", "http://***"),
        ("http://cam/video#geheim", "http://cam/video#***"),
        ("rtsp://cam/user=admin_password=geheim_channel=1", "rtsp://cam/user=***"),
        ("http://cam/cgi/x/admin:geheim/x", "http://cam/cgi/x/admin:***/x"),
        ("http://cam:80/admin:geheim", "http://cam:80/admin:***"),
        ("rtsp://cam/admin%3Ageheim/main", "rtsp://cam/admin%3A***/main"),
        ("rtsp://cam/a/b:geheim/c:heim/d", "rtsp://cam/a/b:***/c:***/d"),
        ("http://u:geheim@cam/admin:geheim/x?geheim", "http://***@cam/admin:***/x?***"),
        ("rtsps://10.0.0.12:7441/BlvHDJVeqeh8oNa9", "rtsps://10.0.0.12:7441/***"),
        ("rtsps://10.0.0.12:7441/BlvHDJVeqeh8oNa9?enableSrtp", "rtsps://10.0.0.12:7441/***?***"),
        ("RTSP://cam/live/PaThSeC999KeY/main", "RTSP://cam/live/***/main"),
        ("rtsp://cam/h264Preview_01_main", "rtsp://cam/h264Preview_01_main"),
        ("rtsp://cam/Streaming/Channels/101", "rtsp://cam/Streaming/Channels/101"),
        ("https://files/BlvHDJVeqeh8oNa9.mp4", "https://files/BlvHDJVeqeh8oNa9.mp4"),
    ],
)
def test_an_address_is_shown_the_same_alone_and_in_a_text(url: str, shown: str) -> None:
    assert redact_url(url) == shown
    for before, behind in (("", ""), ("no answer from ", ": refused"), ("open('", "')"), ("\n  <", ">\n a@b")):
        assert redact_urls(before + url + behind) == before + shown + behind


def test_the_path_of_a_file_is_shown_as_it_is() -> None:
    assert redact_url("/videos/a@b.mp4") == "/videos/a@b.mp4"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'http://u:geheim@h/' and tcp://u:other@h", "'http://***@h/' and tcp://***@h"),
        ("['rtsp://u:geheim@h/1', 'rtsp://v:geheim@h/2']", "['rtsp://***@h/1', 'rtsp://***@h/2']"),
        ("rtsp://u:ge'heim@h/x", "rtsp://***@h/x"),
        ('rtsp://u:ge"heim@h/x', "rtsp://***@h/x"),
        ("rtsp://u:ge heim@h/x is down", "rtsp://***@h/x is down"),
        ("rtsp://geheim@h is down", "rtsp://***@h is down"),
        ("rtsp://u:geheim is down", "rtsp://*** is down"),
        ("GET /x?Token=geheim&n=1", "GET /x?Token=***&n=1"),
        ("tcp://127.0.0.1:7000: refused", "tcp://127.0.0.1:7000: refused"),
        ("url=rtsp://u:geheim@h/x other=http://u:geheim@h/y", "url=rtsp://***@h/x other=http://***@h/y"),
        ("rtsp://u:geheim is down, and so is http://u:geheim@h/y", "rtsp://***"),
        ("no answer from rtsp://h/x; write to a@b", "no answer from rtsp://h/x; write to a@b"),
        ("no url: a@b", "no url: a@b"),
        ("no file /home/me/http:/u:geheim@h/r.yaml here", "no file /home/me/http:/***@h/r.yaml here"),
        ("asset:a.onnx, file:/home/a@b and 10:/x", "asset:a.onnx, file:/home/a@b and 10:/x"),
        (
            "expected mqtt://HOST[:PORT] or https://HOST:PORT/PATH: x",
            "expected mqtt://HOST[:PORT] or https://HOST:PORT/PATH: x",
        ),
        ("rtsp://HOST:PORT@cam/1", "rtsp://***@cam/1"),
    ],
)
def test_in_a_text_only_what_is_secret_goes(text: str, expected: str) -> None:
    assert redact_urls(text) == expected


# ---- passwords that nobody would think of

texts = st.text(max_size=8)
no_space = st.text(st.characters(exclude_categories=["Z", "C"]), max_size=8)
places = st.sampled_from(["u:{}@h/p", "{}@h", ":{}@h:554", "h/p?token={}", "h/?{}", "h/password={}_x"])


@given(texts, texts, places)
def test_an_address_alone_never_shows_its_secret(before: str, after: str, place: str) -> None:
    assert SECRET not in redact_url("rtsp://" + place.format(before + SECRET + after))


segments = st.text(st.characters(exclude_categories=["Z", "C"], exclude_characters="/"), max_size=8)


@given(segments, segments, st.sampled_from(["h/cgi/me:{}/x", "h/me:{}", "h:80/me%3a{}/x", "u:p@h/x/me:{}"]))
def test_nor_one_in_a_part_of_its_path(before: str, after: str, place: str) -> None:
    url = "http://" + place.format(before + SECRET + after)
    assert SECRET not in redact_url(url)
    assert SECRET not in redact_urls(f"GET '{url}': 404, see {url}.")


@given(st.text(min_size=1))
def test_encoded_credentials_keep_the_host(password: str) -> None:
    shown = redact_url(f"rtsp://viewer:{quote(password, safe='')}@cam.local:554/main")
    assert shown == "rtsp://***@cam.local:554/main"


def _raised(url: str) -> str:
    try:
        raise OSError(5, "no answer", url)
    except OSError:
        return traceback.format_exc()


def _in_json(url: str) -> str:
    return json.dumps({"camera": "front", "values": {"url": url, "max_fps": 5}, "mail": "a@b"}, ensure_ascii=False)


SURROUNDINGS: list[Callable[[str], str]] = [
    str,
    repr,
    _raised,
    _in_json,
    lambda url: f"[tcp @ 0x55] Connection to {url} failed: {url!r} at a@b, http://h/y?x=1",
    lambda url: f"camera=front why=\"{url}: refused\" next=(tcp://127.0.0.1:7000) '{url}'",
]


@pytest.mark.parametrize("around", SURROUNDINGS)
@given(before=no_space, after=no_space, place=places)
@example(before="'", after='"', place="u:{}@h/p")
@example(before="://", after="@", place="{}@h")
def test_a_text_never_shows_the_secret_of_an_address(
    around: Callable[[str], str], before: str, after: str, place: str
) -> None:
    assert SECRET not in redact_urls(around("rtsp://" + place.format(before + SECRET + after)))


@pytest.mark.parametrize("around", SURROUNDINGS)
@given(before=texts, after=texts, place=places)
def test_nor_an_encoded_one(around: Callable[[str], str], before: str, after: str, place: str) -> None:
    secret = quote(before, safe="") + SECRET + quote(after, safe="")
    assert SECRET not in redact_urls(around("rtsp://" + place.format(secret)))


@given(before=st.text("ab :/#?.,'\"", max_size=8), after=st.text("ab :@/#?.,'\"", max_size=8))
@example(before="", after=" b")
def test_nor_one_with_white_space_that_somebody_forgot_to_encode(before: str, after: str) -> None:
    shown = redact_urls(f"no answer from rtsp://viewer:x{before}{SECRET}{after}@h/p")
    assert SECRET not in shown


# ---- where texts are shown


URL = f"rtsp://viewer:it's {SECRET}@h/p"


def test_no_log_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        log_to_stderr(as_json=True)
        log = structlog.get_logger()
        log.error("failed", why=URL, also=[URL, {"url": URL}], long="x " * 9_995 + URL)
        try:
            raise OSError(5, "no answer", URL)
        except OSError:
            log.exception("broken")
    finally:
        structlog.reset_defaults()
    output = capsys.readouterr().err
    assert "rtsp://***@h/p" in output
    assert SECRET not in output


def test_problems_and_reasons_are_redacted() -> None:
    outcome = Outcome()
    outcome.add(1, f"camera front: {URL}")
    assert outcome.problems == ["camera front: rtsp://***@h/p"]
    assert reason_line(f"{URL}\nagain") == "rtsp://***@h/p again"


def test_nor_the_answers_of_a_run(tmp_path: Path) -> None:
    server = ControlServer(tmp_path / "control", lambda _: {"error": f"no {URL}", "kept": {"file": "a@b"}})
    with closing(server), closing(follow(tmp_path / "control", "{}")) as link:
        server.serve()
        assert [json.loads(one) for one in link.receive()] == [{"error": "no rtsp://***@h/p", "kept": {"file": "a@b"}}]


@pytest.mark.parametrize("text", ["no rtsp://viewer:Zq9heim@10.0.0.1/main", "no http://h/video?token=Zq9heim&x=1"])
def test_where_a_text_is_cut_no_half_of_a_secret_is_shown(text: str) -> None:
    for most in range(len(text) + 10):
        cut = redacted_beginning(f"{text} {'y' * 9000}", most)
        assert most - 20 <= len(cut) <= most, "what is hidden is shorter"
        assert f"{redact_urls(text)} {'y' * 9000}".startswith(cut)


def test_a_slightly_too_long_text_keeps_its_start_or_end() -> None:
    text = "no rtsp://u:Zq9@h/p, " + "y" * 300
    assert redacted_beginning(text, 30) == "no rtsp://***@h/p, " + "y" * 11
    assert redacted_end(text, 30) == "y" * 30
    assert redacted_line(text, 30) == "no rtsp://***@h/p, " + "y" * 11 + "..."
    assert redacted_line("a\nb", 30) == "a\\nb"


@pytest.mark.parametrize("rest", [0, 9000])
def test_no_half_of_a_known_secret_is_shown_at_either_end(monkeypatch: pytest.MonkeyPatch, rest: int) -> None:
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setattr(redaction, "_any_known", None)
    redaction.hide(["0123456789"])
    for most in range(40):
        for cut in (redacted_beginning(f"{'x' * 10}0123456789{'x' * (10 + rest)}", most),
                    redacted_end(f"{'x' * (10 + rest)}0123456789{'x' * 10}", most)):  # fmt: skip
            assert len(cut) <= most
            assert set(cut) <= set("x*")


@pytest.mark.parametrize("head", ["", "u", "us", "use", "user:", "ward:"])
@pytest.mark.parametrize("value", ["secret", "pass/wörd+?~", "a secret of many words"])
def test_a_secret_is_hidden_in_any_encoding(monkeypatch: pytest.MonkeyPatch, head: str, value: str) -> None:
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setattr(redaction, "_any_known", None)
    redaction.hide([value])
    data = (head + value).encode()
    for text in (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data + b"xyz").decode()):
        hidden = redact_urls(f"it said {text}")
        assert "***" in hidden
        assert len(hidden) <= len("it said *** ==") + len(text) - len(value) * 8 // 6 + 2
    for text in (quote(value), quote_plus(value), quote(value, safe="").lower(), json.dumps(value), repr(value)):
        assert redact_urls(f"x{text}x").strip("x\"'") == "***"


def test_a_short_text_is_not_cut() -> None:
    assert redacted_beginning("no rtsp://u:Zq9@h/p", 1000) == "no rtsp://***@h/p"


def test_a_long_word_costs_no_time() -> None:
    """Looked through from each of its letters it took seconds."""
    began = time.process_time()
    for word in ("x" * 20_000, "a+." * 7000, "x" * 100 + f"://u:{SECRET}@h", "a://" * 5000, "://b@ " * 3000):
        assert SECRET not in redact_urls(word)
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize("text", ["?" * 300_000, "?" + "pass" * 75_000, "&a" * 150_000, "x" * 300_000])
def test_long_texts_are_read_once(text: str) -> None:
    """Where each character began a search through all that follow, this would take hours."""
    assert redact_urls(text) == text
