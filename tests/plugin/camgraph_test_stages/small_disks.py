"""Disks that lack something: one is soon full, another has no hard links."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file system of this size, mounted below `folder`. Skips the test without the right to mount."""
    disk = folder / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(disk)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no right to mount a small disk: {made.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@contextmanager
def disk_without_links(folder: Path) -> Iterator[Path]:
    """A file system of 32 MB without hard links (exFAT), mounted below `folder`. Skips the test if none can be."""
    disk, image = folder / "exfat", folder / "exfat.img"
    disk.mkdir()
    if not shutil.which("mkfs.exfat"):
        pytest.skip("no mkfs.exfat: install exfatprogs and exfat-fuse")
    with image.open("wb") as file:
        os.truncate(file.fileno(), 32 << 20)
    _tried(["mkfs.exfat", str(image)])
    device = _tried(["losetup", "--find", "--show", str(image)])
    try:
        kernel = subprocess.run(["mount", "-i", "-t", "exfat", device, str(disk)], capture_output=True, check=False)
        if kernel.returncode:  # its driver is not there: then the one outside of the kernel
            if not shutil.which("mount.exfat-fuse"):
                pytest.skip("neither this kernel nor exfat-fuse mounts exFAT")
            _tried(["mount.exfat-fuse", device, str(disk)])
        yield disk
        subprocess.run(["umount", str(disk)], check=True)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def _tried(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no right to make a disk without hard links: {command[0]}: {done.stderr.strip()}")
    return done.stdout.strip()
