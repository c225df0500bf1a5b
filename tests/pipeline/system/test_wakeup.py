"""What ends the wait of a loop."""

from __future__ import annotations

import gc
import os
import select
import threading

import pytest

from camgraph.pipeline.system.wakeup import Wakeup


def is_awake(wakeup: Wakeup, timeout_ms: int = 0) -> bool:
    poller = select.poll()
    poller.register(wakeup.fileno(), select.POLLIN)
    return bool(poller.poll(timeout_ms))


def test_a_wait_ends_and_the_next_one_does_not() -> None:
    wakeup = Wakeup()
    assert not is_awake(wakeup)
    thread = threading.Thread(target=wakeup.wake)
    thread.start()
    assert is_awake(wakeup, 60_000)
    thread.join()
    wakeup.wake()
    wakeup.clear()
    assert not is_awake(wakeup)


def test_clearing_twice_does_not_wait() -> None:
    wakeup = Wakeup()
    wakeup.wake()
    wakeup.clear()
    wakeup.clear()
    assert not is_awake(wakeup)


def test_the_descriptor_is_closed_with_the_last_reference() -> None:
    wakeup = Wakeup()
    descriptor, wake = wakeup.fileno(), wakeup.wake
    del wakeup
    gc.collect()
    wake()
    del wake
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
