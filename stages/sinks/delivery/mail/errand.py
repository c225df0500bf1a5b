"""Something that takes long and cannot be limited from within, such as a conversation with a server, in a thread.

errand = Errand(lambda: talk(), limit_s=60.0, name="mail")
if not errand.is_over(wait_s=1.0): ...                  # between two calls the process goes on listening
errand.result()
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from camgraph.pipeline.errors import Unavailable

T = TypeVar("T")


class Errand(Generic[T]):
    """Begins at once. If you give it up, close what it waits for: a thread cannot be stopped."""

    def __init__(self, run: Callable[[], T], limit_s: float, name: str) -> None:
        self._run = run
        self._until_s = time.monotonic() + limit_s
        self._over = threading.Event()
        self._results: list[T] = []
        self._error: Exception | None = None
        try:
            threading.Thread(target=self._do, name=name, daemon=True).start()
        except RuntimeError as error:
            raise Unavailable(f"cannot begin: {error}: raise ulimit -u") from error

    def _do(self) -> None:
        try:
            self._results.append(self._run())
        except Exception as error:  # noqa: BLE001 - raised in `result`, in the thread that waits for it
            self._error = error
        self._over.set()

    def is_over(self, wait_s: float) -> bool:
        """Wait at most so long. Raises TimeoutError once the limit is over."""
        if self._over.wait(max(0.0, min(wait_s, self._until_s - time.monotonic()))):
            return True
        if time.monotonic() >= self._until_s:
            raise TimeoutError
        return False

    def result(self) -> T:
        """What it returned, once it is over. Raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._results[0]
