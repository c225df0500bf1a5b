"""The machine: shared memory, descriptors, memory, processors, ports."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Iterator
from pathlib import Path

from camgraph.pipeline.system.cores import usable_cores
from camgraph.pipeline.system.paths import SHARED_MEMORY
from camgraph.tools.commands.doctor.notice import Notice

_SHM_BYTES = 512 * 2**20
"""Sixteen cameras of 1080p."""
_DESCRIPTORS = 4096
_MEMORY_BYTES = 2 * 2**30
_UNLIMITED = -1
"""As `resource.RLIM_INFINITY`, which Windows has not."""
_FAST = {
    "avx512_vnni": "VNNI (fast int8)",
    "avx_vnni": "VNNI (fast int8)",
    "avx512_bf16": "bf16",
    "amx_bf16": "AMX bf16",
}


def look_at_shared_memory(folder: Path = SHARED_MEMORY) -> Iterator[Notice]:
    """Frames lie there, but in a graph with `processes: one`, which is all that other systems can run."""
    if not hasattr(os, "statvfs") or platform.system() != "Linux":
        yield Notice("ok", "shared memory", f"none on {platform.system()}: write `processes: one` in graphs")
        return
    try:
        status = os.statvfs(folder)
    except OSError as error:
        yield Notice("wrong", "shared memory", f"{folder}: {error.strerror}", f"mount -t tmpfs tmpfs {folder}")
        return
    free, total = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    found = f"{free / 2**20:.0f} of {total / 2**20:.0f} MiB free in {folder}"
    if free < _SHM_BYTES:
        cure = f"mount -o remount,size=1G {folder} (in a container: docker run --shm-size 1g)"
        yield Notice("warning", "shared memory", found, cure)
    else:
        yield Notice("ok", "shared memory", found)


def look_at_descriptors(limits: tuple[int, int] | None = None) -> Iterator[Notice]:
    """Each process has sockets to its neighbours, and files of shared memory."""
    soft, hard = limits or _limits()
    found = f"{soft} files may be open at once, {hard} at most"
    if soft == _UNLIMITED:
        yield Notice("ok", "descriptors", "not limited here")
    elif hard != _UNLIMITED and hard < _DESCRIPTORS:
        cure = f"raise it: LimitNOFILE={_DESCRIPTORS} in systemd, --ulimit nofile={_DESCRIPTORS} for docker"
        yield Notice("warning", "descriptors", found, cure)
    elif soft < _DESCRIPTORS:
        yield Notice("ok", "descriptors", f"{found}; `ulimit -n {_DESCRIPTORS}` for very many cameras")
    else:
        yield Notice("ok", "descriptors", found)


def _limits() -> tuple[int, int]:
    try:
        import resource  # noqa: PLC0415 - there is none on Windows
    except ImportError:
        return _UNLIMITED, _UNLIMITED
    return resource.getrlimit(resource.RLIMIT_NOFILE)


def look_at_memory(meminfo: str | None = None) -> Iterator[Notice]:
    """Its free bytes; nothing if the system does not report them."""
    text = _text_of("/proc/meminfo") if meminfo is None else meminfo
    if not text:
        return
    known = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    free = int(known.get("MemAvailable", "0 kB").split()[0]) * 1024
    found = f"{free / 2**30:.1f} GiB free"
    if free < _MEMORY_BYTES:
        yield Notice("warning", "memory", found, "a graph of four cameras takes about 1 GiB: close something")
    else:
        yield Notice("ok", "memory", found)


def look_at_processors(cpuinfo: str | None = None) -> Iterator[Notice]:
    """The number of cores for this process, and their instructions that make models fast."""
    text = _text_of("/proc/cpuinfo") if cpuinfo is None else cpuinfo
    flags = next((set(line.split()) for line in text.splitlines() if line.startswith(("flags", "Features"))), set())
    fast = sorted({name for flag, name in _FAST.items() if flag in flags})
    known = ", ".join(fast) or ("no VNNI, no bf16" if text else "the system does not report them")
    yield Notice("ok", "processors", f"{usable_cores()} cores; {known}")


def _text_of(path: str) -> str:
    """ "" on systems without /proc."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def look_at_port(port: int, used_by: str, cure: str = "") -> Iterator[Notice]:
    """Whether the port that `used_by` takes by default is in use already."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError as error:
            found = f"127.0.0.1:{port} cannot be had: {error.strerror}"
            yield Notice("warning", f"port {port}", found, cure or f"{used_by} needs it, or `--port` with another one")
            return
    yield Notice("ok", f"port {port}", f"127.0.0.1:{port} is free for {used_by}")
