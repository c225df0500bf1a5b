"""How much shared memory the pictures of a camera may take: `memory_mb`, as FFmpeg may for itself.

All slots of a camera become as large as its largest picture, and the camera, or the author of the file, decides how
large that is.
"""

from __future__ import annotations

from collections.abc import Callable

from camgraph.stages.video.pixels import Picture


class SlotMemory:
    """For one camera. ``slots``: how many it has, 0 if its pictures stay in their process.

    ``declared_bytes``: of its largest picture, as `check` has found it and counted it before the run; 0 if only
    opening would tell. It is asked only if a picture needs more than ``memory_mb``.
    """

    def __init__(self, memory_mb: int, slots: int, declared_bytes: Callable[[], int]) -> None:
        self._memory_mb = memory_mb
        self._slots = slots
        self._declared_bytes = declared_bytes
        self._declared: int | None = None
        self._fitting: Picture | None = None

    def why_too_large(self, picture: Picture) -> str:
        """Empty if there is room for pictures like this one."""
        if picture == self._fitting:
            return ""
        wanted = self._slots * picture.nbytes
        if wanted > self._memory_mb << 20 and picture.nbytes > self._largest_declared():
            return (
                f"a picture of {picture.width}x{picture.height} needs {self._slots} slots of "
                f"{picture.nbytes / 1e6:.1f} MB in shared memory, more than {self._memory_mb} MB (memory_mb); "
                f"if this size is right, write memory_mb: {-(-wanted >> 20)} for its camera"
            )
        self._fitting = picture
        return ""

    def _largest_declared(self) -> int:
        if self._declared is None:
            self._declared = self._declared_bytes()
        return self._declared
