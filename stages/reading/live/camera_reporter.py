"""Reports on one live camera, in the words of `pipeline.stage.Context`."""

from __future__ import annotations

import threading
import traceback

from pipeline.stage import CameraState, Context
from stages.reading.live.turns import Turns


class CameraReporter:
    """The context, for one camera. A change of its state is reported once. May be used from any thread."""

    def __init__(self, camera: str, context: Context) -> None:
        self._camera = camera
        self._context = context
        self._warned: set[str] = set()
        self._bugs: set[str] = set()
        self._state: CameraState | None = None
        self._lock = threading.Lock()

    @property
    def turns(self) -> Turns:
        """Of all processes of this stage that open decoders on a GPU."""
        return Turns(self._context.state_folder / "decoders.lock", self.alive)

    def alive(self) -> None:
        """A sign of life."""
        self._context.alive()

    def count(self, name: str, n: int = 1) -> None:
        """As `Context.count`: `dropped.<reason>` or `skipped.<reason>`."""
        self._context.count(name, self._camera, n)

    def shows(self, **facts: str | float) -> None:
        """As `Context.camera_shows`."""
        self._context.camera_shows(self._camera, **facts)

    def warns_once(self, event: str, **keys: str) -> None:
        """Log it, when nothing was warned of under this name before."""
        if event not in self._warned:
            self._warned.add(event)
            self._context.log.warning(event, camera=self._camera, **keys)

    def failed(self, error: Exception) -> None:
        """Log a bug of this program with its traceback: once, however often the camera meets it."""
        place = traceback.extract_tb(error.__traceback__)[-1:]
        met = f"{type(error).__name__} {place}"
        if met not in self._bugs:
            self._bugs.add(met)
            self._context.log.exception("source_failed", camera=self._camera, exc_info=error)

    def is_now(self, state: CameraState, why: str = "") -> None:
        """As `Context.camera_is`; the same state again is not reported, even for another reason."""
        with self._lock:
            if state != self._state:
                self._state = state
                self._context.camera_is(self._camera, state, why)
