"""Which messages each side of a connection knows to be done; the consequences are in `../test_resending.py`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.items import Key
from camgraph.pipeline.transport.protocol import Watermark
from camgraph.pipeline.transport.watermark import ReceivedWatermark, SentWatermark


def key(seq: int) -> Key:
    return Key(0, seq, 0)


@given(st.lists(st.tuples(st.integers(1, 20), st.booleans())))
def test_a_reader_that_hears_every_report_knows_the_same(rises: list[tuple[int, bool]]) -> None:
    sent, received = SentWatermark(), ReceivedWatermark()
    for seq, final in rises:
        before = sent.provisional, sent.final
        sent.rise(key(seq), final=final)
        assert sent.is_news == (before != (sent.provisional, sent.final))
        for reported in sent.report("a>b", "c", None):
            received.rise(reported)
        assert not sent.is_news
        assert (received.provisional, received.final) == (sent.provisional, sent.final)
        assert sent.provisional
        assert sent.final is None or sent.final <= sent.provisional


def test_a_provisional_report_tells_what_is_done_not_what_comes() -> None:
    received = ReceivedWatermark()
    received.rise(Watermark("a>b", "c", key(5), None, final=False))
    assert received.was_done(key(5))
    assert not received.was_done(key(6))
    assert not received.is_silent(key(1), key(9))


def test_a_reader_waits_until_the_announced_message_has_come() -> None:
    received = ReceivedWatermark()
    received.rise(Watermark("a>b", "c", key(5), key(3), final=True))
    assert not received.is_silent(key(5), None)
    assert not received.is_silent(key(5), key(2))
    assert received.is_silent(key(5), key(3))
    assert not received.is_silent(key(6), key(3))


def test_the_report_of_a_later_sender_takes_nothing_back() -> None:
    received = ReceivedWatermark()
    received.rise(Watermark("a>b", "c", key(5), key(3), final=True))
    received.rise(Watermark("a>b", "c", key(2), None, final=True))
    assert (received.provisional, received.final, received.again) == (key(5), key(5), key(3))
