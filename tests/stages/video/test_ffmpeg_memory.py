"""Whose memory it is that grows."""

from __future__ import annotations

from camgraph.stages.video.ffmpeg_memory import MemoryGuard, own_bytes

MB = 1 << 20
CALL_S = 100.0


def taken(mb: int) -> bytearray:
    """So much memory, touched."""
    block = bytearray(mb * MB)
    block[::4096] = b"x" * len(block[::4096])
    return block


def test_memory_that_is_taken_and_given_back_is_seen() -> None:
    before = own_bytes()
    block = taken(200)
    assert own_bytes() - before > 150 * MB
    del block
    assert own_bytes() - before < 100 * MB


def test_what_grows_within_a_long_call_is_the_cameras() -> None:
    with MemoryGuard(64, alone=False) as guard:
        assert not guard.is_over(CALL_S, CALL_S)
        block = taken(200)
        assert not guard.is_over(CALL_S, CALL_S + 0.2), "that is no longer than a picture takes"
        assert guard.is_over(CALL_S, CALL_S + 1)
        del block


def test_growth_between_calls_counts_only_if_alone() -> None:
    for alone in (False, True):
        with MemoryGuard(64, alone=alone) as guard:
            assert not guard.is_over(CALL_S, CALL_S)
            block = taken(200)
            assert guard.is_over(CALL_S + 1, CALL_S + 1) is alone
            assert guard.is_over(None, CALL_S + 2) is alone
            del block


def test_cameras_of_one_process_may_take_what_all_of_them_may() -> None:
    with MemoryGuard(64, alone=True) as guard, MemoryGuard(1024, alone=True):
        assert not guard.is_over(CALL_S, CALL_S)
        block = taken(200)
        assert not guard.is_over(CALL_S, CALL_S + 1)
        del block
