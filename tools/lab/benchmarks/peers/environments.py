"""Virtual environments of the peers: made from the package index that pip is set to, outside of the project.

$XDG_CACHE_HOME/camgraph/peers/NAME/             (~/.cache where that is not set)
                               NAME/installed    its requirements; written when the installation is complete
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from camgraph.pipeline.system.paths import asset_folder

_INSTALL_S = 1800.0
_MARK = "installed"


class NotToBeHad(Exception):
    """Somebody cannot take part: why."""


def peers_folder() -> Path:
    """Where all of them are; it may not exist yet."""
    return asset_folder().parent / "peers"


def python_of(name: str, requirements: Sequence[str], *, install: bool) -> Path:
    """The Python of the environment of that name, which has these. Raises NotToBeHad."""
    folder = peers_folder() / name
    mark, wanted = folder / _MARK, "\n".join(requirements)
    python = folder / "bin" / "python"
    if not (mark.exists() and mark.read_text() == wanted and python.exists()):
        if not install:
            raise NotToBeHad(f"{folder} is not installed; leave out --no-install to have it made")
        folder.parent.mkdir(parents=True, exist_ok=True)
        done([sys.executable, "-m", "venv", str(folder)])
        done([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements])
        mark.write_text(wanted)
    return python


def done(command: Sequence[str]) -> None:
    """Run a step of the installation. Raises NotToBeHad with what it says itself."""
    try:
        ran = subprocess.run(  # noqa: S603 - our own command
            command, capture_output=True, text=True, errors="replace", timeout=_INSTALL_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotToBeHad(f"not installed after {_INSTALL_S / 60:.0f} min") from None
    if ran.returncode:
        errors = [line for line in ran.stderr.splitlines() if line.startswith("ERROR")] or ran.stderr.splitlines()
        raise NotToBeHad(f"cannot be installed: {errors[-1] if errors else f'status {ran.returncode}'}")
