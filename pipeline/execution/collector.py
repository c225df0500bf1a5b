"""The slots of shared memory that a thread's stages take for their outputs, until these are sent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from camgraph.pipeline.messages import Array

if TYPE_CHECKING:
    from camgraph.pipeline.shm.slots import Slot

Allocate = Callable[[Mapping[str, tuple[tuple[int, ...], str]]], "tuple[Slot | None, dict[str, Array]]"]
"""Makes the arrays of one message, by name from their shapes and types, in a slot of the process."""


class Collecting:
    """The slots that one thread collects within a `with`; afterwards the outer collection goes on."""

    __slots__ = ("_local", "_outer", "_slots")

    def __init__(self, local: threading.local) -> None:
        self._local = local
        self._slots: list[Slot] = []

    def __enter__(self) -> list[Slot]:
        self._outer = getattr(self._local, "slots", None)
        self._local.slots = self._slots
        return self._slots

    def __exit__(self, *error: object) -> None:
        self._local.slots = self._outer


class Collector:
    """The slots that a thread's stages take for their outputs; the collector lets go of them after sending.

    `release` gives one back to its owner; it is not needed if nothing is allocated.
    """

    def __init__(self, release: Callable[[Slot], None] | None = None) -> None:
        self._local = threading.local()
        self._release = release

    @property
    def slots(self) -> list[Slot] | None:
        """The slots that this thread has collected so far, or None if it does not collect."""
        slots: list[Slot] | None = getattr(self._local, "slots", None)
        return slots

    def collecting(self) -> Collecting:
        """Collect in this thread meanwhile: `with collector.collecting() as slots`."""
        return Collecting(self._local)

    def let_go(self, slots: Iterable[Slot]) -> None:
        """These are needed no longer."""
        for slot in slots:
            assert self._release
            self._release(slot)

    def mark(self) -> int:
        """The number of slots that this thread has collected so far: to come `back_to` after a failure."""
        return len(self.slots or ())

    def back_to(self, mark: int) -> None:
        """Let go of the slots that this thread has collected since `mark`."""
        slots = self.slots or []
        failed = slots[mark:]
        del slots[mark:]
        self.let_go(failed)
