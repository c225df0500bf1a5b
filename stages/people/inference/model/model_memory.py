"""Holds models to a limit of memory on this machine's processor.

    has now + `memory_mb` of its models + the rest of the process      the limit of a process, while a model is open

    cpu        the kernel refuses more (RLIMIT_DATA): the run fails, and the process goes on
    openvino   watched ten times a second; beyond it the process is killed
    a GPU      not held: its libraries take address space by the gigabyte

Private writable memory counts, from the moment that it is asked for. RLIMIT_DATA costs nothing while a model runs, and
holds in every thread. A limit of ONNX Runtime's arena (`max_mem`) does not see the memory that operators take beside
it: at 1,000 MB, a NonZero took 2,000.

OpenVINO (2026.4) must not be refused memory: a run that did not get it ended without an error, with the outputs of the
run before. So its process is killed before it has filled the memory that it asked for.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from camgraph.pipeline.system.machine_memory import usable_memory

_STATM = Path("/proc/self/statm")
_SHARE = 2
"""Of the memory that there is, this part is for the model of a stage, in all of its processes."""
_LEAST = 1 << 30
"""On small machines, and with many processes: ordinary models fit in."""
_ELSE = 256 << 20
"""Other memory of the process meanwhile: 8 MB for the stack of each thread, queues, the stages behind the model."""
_OF_A_CAMERA = 1 << 30
"""If its source is in the same process."""

_TICK_S = 0.1
KILLED = "killed: "
"""The beginning of the last line that a process writes."""

T = TypeVar("T")


class ModelMemory:
    """The memory that the models of one stage may take; no limit if ``most_bytes`` is None.

    ``cameras``: how many have their source in the same process.
    """

    def __init__(self, most_bytes: int | None, *, cameras: int = 0) -> None:
        self.most_bytes = most_bytes
        self.beside_bytes = cameras * _OF_A_CAMERA
        self.is_watched = False

    def hold(self, provider: str) -> None:
        """From now on, until `release`, as is right for this provider; it may change."""
        if self.most_bytes is None or provider not in ("cpu", "openvino"):
            _LIMIT.remove(self)
        else:
            _LIMIT.add(self, is_watched=provider == "openvino")

    def release(self) -> None:
        """No longer, if at all."""
        _LIMIT.remove(self)


class _Limit:
    """For this process: the sum of its stages' limits; the default only if none of them gives one."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # garbage collection meanwhile may release its own
        self._stages: list[ModelMemory] = []
        self._usual: list[ModelMemory] = []
        self._began_with = 0
        self._before: tuple[int, int] | None = None
        self._most = 0
        self._changed = threading.Event()

    @property
    def models_bytes(self) -> int:
        """For models; 0 if they are not limited."""
        with self._lock:
            return sum(each.most_bytes or 0 for each in self._stages or self._usual[:1])

    def add(self, memory: ModelMemory, *, is_watched: bool, usual: bool = False) -> None:
        with self._lock:
            memory.is_watched = is_watched
            if memory not in self._stages + self._usual:
                (self._usual if usual else self._stages).append(memory)
            self._set()

    def remove(self, memory: ModelMemory) -> None:
        with self._lock:
            for held in (self._stages, self._usual):
                if memory in held:
                    held.remove(memory)
                    self._set()

    def _set(self) -> None:
        with suppress(ImportError, ValueError, OSError):
            import resource  # noqa: PLC0415 - there is none elsewhere

            if self._before is None:
                self._began_with = data_bytes()
                self._before = resource.getrlimit(resource.RLIMIT_DATA)
            soft, hard = self._before
            beside = sum(each.beside_bytes for each in self._stages)
            self._most = self._began_with + self.models_bytes + beside + _ELSE
            is_watched = any(each.is_watched for each in self._stages + self._usual)
            if not self._stages + self._usual:
                self._before = None
            elif not is_watched:
                soft = min(limit for limit in (self._most, soft, hard) if limit != resource.RLIM_INFINITY)
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
            self._watch(is_watched=is_watched)

    def _watch(self, *, is_watched: bool) -> None:
        self._changed.set()
        if is_watched:
            self._changed = threading.Event()
            args = (self._changed, self._most)
            threading.Thread(target=_watch, args=args, name="model-memory", daemon=True).start()


_LIMIT = _Limit()


def most_of(memory_mb: int | None, workers: int = 1) -> int | None:
    """Bytes for each process of a stage: by its settings, else a share of the machine's memory.

    None if the settings give none, and the system does not report its memory.
    """
    if memory_mb is not None:
        return memory_mb << 20
    there = usable_memory()
    return None if there is None else max(_LEAST, there // _SHARE // workers)


def models_bytes() -> int:
    """The memory that models of this process may take now; 0 if they are not limited."""
    return _LIMIT.models_bytes


def held(opens: Callable[[], T], provider: str) -> T:
    """The open model that ``opens`` returns, held to the default as long as it lives, unless a stage gives more."""
    if provider not in ("cpu", "openvino"):
        return opens()
    memory = ModelMemory(most_of(None))
    if memory.most_bytes is None:
        return opens()
    _LIMIT.add(memory, is_watched=provider == "openvino", usual=True)
    try:
        model = opens()
    except BaseException:
        memory.release()
        raise
    weakref.finalize(model, memory.release)
    return model


def lift() -> None:
    """For a process that has inherited the limit of another one."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - there is none elsewhere

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def beyond(asked_bytes: int | None = None) -> str:
    """That there is no more memory for a model, in words. ``asked_bytes``: how much it asked for, if that is known."""
    wanted = "it wants more" if asked_bytes is None else f"it wants {asked_bytes / (1 << 20):,.0f} MB more"
    most = _LIMIT.models_bytes
    if not most:
        return (
            f"{wanted} memory than the machine gives; free some, or use a smaller `batch: {{max}}` or fewer `threads`"
        )
    return (
        f"{wanted}, and models may take {most >> 20:,} MB of the memory of this process; if you trust the model, set a "
        "larger `memory_mb` of the stage; a smaller `batch: {max}` and fewer `threads` need less"
    )


def _watch(changed: threading.Event, most: int) -> None:
    while not changed.wait(_TICK_S):
        if data_bytes() > most:
            # The parent of this process counts its death against the work at hand.
            sys.stderr.write(f"{KILLED}{beyond()}\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)


def data_bytes() -> int:
    """The memory of this process that RLIMIT_DATA counts. Raises OSError or ValueError if the system does not report
    it.
    """
    return int(_STATM.read_text().split()[5]) * os.sysconf("SC_PAGE_SIZE")
