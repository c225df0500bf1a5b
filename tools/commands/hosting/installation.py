"""The files of a service on the machine: /etc/systemd/system/camgraph-NAME.service, and the account that it runs as."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.tools.commands.hosting.unit import ACCOUNT, is_ours, unit_name

_UNITS = "etc/systemd/system"
_ASSETS = "var/cache/camgraph/assets"
_ACCOUNTS = "etc/sysusers.d/camgraph.conf"
_BOOTED = Path("/run/systemd/system")
_LIMIT_S = 60
SYSUSERS = f"""# Written by `camgraph service install`.
u {ACCOUNT} - "camgraph" /var/lib/camgraph
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine, or the image of one: `root` is the folder of its file system."""

    root: Path = Path("/")

    @property
    def is_this(self) -> bool:
        """False for an image."""
        return self.root.resolve() == Path("/")

    def require_fit(self, again: str) -> None:
        """Raises EnvironmentProblem if no unit can be installed. `again`: the command line, to be typed with sudo."""
        if not self.is_this:
            return
        if not _BOOTED.is_dir():
            raise EnvironmentProblem(
                "this machine does not run systemd: see `camgraph help host` for containers, let your own service "
                "manager start `camgraph run GRAPH`, or prepare an image by --root DIR; --dry-run shows the unit",
                error_id="service-unit",
            )
        if os.geteuid() != 0:
            raise EnvironmentProblem(
                f"units of systemd belong to root: type `sudo {again}`; --dry-run shows the unit without root",
                error_id="service-unit",
            )

    def unit_file(self, name: str) -> Path:
        """The file of the unit for the service of this name."""
        return self.root / _UNITS / unit_name(name)

    def written(self, name: str, text: str) -> bool:
        """Write the unit; False if it is there already. Raises UserError if there is another one."""
        file = self.unit_file(name)
        before = _unit_of_ours(file, "choose another --name, or move it away") if os.path.lexists(file) else None
        if before == text:
            return False
        _write(file, text)
        return True

    def remove(self, name: str) -> None:
        """Stop the service and remove its unit. Raises UserError if there is none of ours."""
        file = self.unit_file(name)
        if not os.path.lexists(file):
            raise UserError(f"there is no {file}{self._names_there()}", error_id="service-unit")
        _unit_of_ours(file, "remove it yourself: `systemctl disable --now`, then the file")
        if self.is_this:
            _call("systemctl", "disable", "--now", unit_name(name))
        file.unlink()
        if self.is_this:
            _call("systemctl", "daemon-reload")

    def make_account(self) -> None:
        """Let systemd make the account of the services: now, or at the first boot of an image."""
        file = self.root / _ACCOUNTS
        if not os.path.lexists(file):
            _write(file, SYSUSERS)
        if self.is_this:
            _call("systemd-sysusers", str(file))

    def copied_assets(self, files: Iterable[Path]) -> Iterator[Path]:
        """Copy models into the cache of the services, if they are not there yet."""
        folder = self.root / _ASSETS
        for file in sorted(files):
            target = folder / file.name
            if target.is_file():
                continue
            try:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target.with_name(f".{file.name}.new"))
                target.with_name(f".{file.name}.new").replace(target)
            except OSError as error:
                raise EnvironmentProblem(
                    f"{target}: cannot be written: {error.strerror}", error_id="cannot-write"
                ) from error
            yield target

    def load_units(self) -> None:
        """Let systemd read its units again."""
        if self.is_this:
            _call("systemctl", "daemon-reload")

    def _names_there(self) -> str:
        files = sorted((self.root / _UNITS).glob(unit_name("*")))
        names = [shown(file.name.removeprefix("camgraph-").removesuffix(".service")) for file in files]
        return f"; services that are there: {', '.join(names)}" if names else ", and no other service of camgraph"


def systemd_version() -> int:
    """0 if there is none."""
    program = shutil.which("systemctl")
    if program is None:
        return 0
    answer = subprocess.run([program, "--version"], check=False, capture_output=True, text=True, timeout=_LIMIT_S)  # noqa: S603
    found = re.match(r"systemd (\d+)", answer.stdout)
    return int(found[1]) if found else 0


def _unit_of_ours(file: Path, way_out: str) -> str:
    if file.is_symlink() or not file.is_file():
        raise UserError(f"{file} is no unit that camgraph has written: {way_out}", error_id="service-unit")
    text = file.read_text("utf-8", "surrogateescape")
    if not is_ours(text):
        raise UserError(f"{file} was not written by camgraph, or was changed since: {way_out}", error_id="service-unit")
    return text


def _write(file: Path, text: str) -> None:
    """Whole or not at all. Raises EnvironmentProblem."""
    new = file.with_name(f".{file.name}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(text, "utf-8", "surrogateescape")
        new.chmod(0o644)
        new.replace(file)
    except OSError as error:
        raise EnvironmentProblem(f"{file}: cannot be written: {error.strerror}", error_id="cannot-write") from error


def _call(*words: str) -> None:
    try:
        answer = subprocess.run(words, check=False, capture_output=True, text=True, timeout=_LIMIT_S)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentProblem(f"{words[0]}: {error}", error_id="service-unit") from error
    if answer.returncode:
        raise EnvironmentProblem(
            f"`{' '.join(words)}` failed: {shown(' '.join(answer.stderr.split()))}", error_id="service-unit"
        )
