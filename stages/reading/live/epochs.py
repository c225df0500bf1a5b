"""Numbers the epochs of a live camera: no two frames of a run may have the same name."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pipeline.system.disk import write_whole
from pipeline.system.names import ascii_form

EPOCHS_OF_A_LIFE = 1_000_000
"""How many connections have room before the epochs of the camera's next life begin."""


def first_epoch(folder: Path, camera: str, incarnation: int) -> int:
    """The first epoch of a new life of this camera in this run.

    A life begins with its process, and again when the camera comes back after it was removed, maybe in another process.
    They are counted in a file of ``folder``, which all processes of the stage share and which lasts as long as the run.
    If that fails, ``incarnation`` (of the process) tells lives apart as far as it can.
    """
    path = folder / f"{ascii_form(camera)}.life"
    life = max(_read(path) + 1, incarnation - 1)
    with suppress(OSError):
        write_whole(path, str(life).encode())
    return life * EPOCHS_OF_A_LIFE


def _read(path: Path) -> int:
    """The number of the last life, -1 if there was none."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return -1
