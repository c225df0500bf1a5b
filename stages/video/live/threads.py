"""Starting the threads that stand beside the one that reads."""

from __future__ import annotations

import threading

from camgraph.stages.video.live.camera_problems import Dropped


def start(thread: threading.Thread) -> None:
    """Start it. Raises Dropped if the machine has no more threads: it may have when the camera is tried again."""
    try:
        thread.start()
    except RuntimeError as error:
        raise Dropped(f"no thread can be started ({error})") from None
