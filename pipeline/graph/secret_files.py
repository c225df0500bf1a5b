"""Secrets in files: the values of `${secret:NAME}` and `${file:PATH}`.

${secret:door}      $CREDENTIALS_DIRECTORY/door   from systemd, for a service (LoadCredential=)
                    /run/secrets/door             mounted by Docker, Podman and Kubernetes
                    the variable `door`           of the environment, or of an env file
${file:/etc/x/pw}   that file
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.system.disk import read_small
from camgraph.pipeline.system.paths import instead_of_file, resolve

_MOUNTED = Path("/run/secrets")
_LARGEST = 1 << 16


@dataclass(frozen=True, slots=True)
class NamedSecret:
    """A secret, or the `problem` if it cannot be read; `remark`: who else can read its file."""

    value: str = ""
    problem: str = ""
    remark: str = ""


def named_secret(name: str, environ: Mapping[str, str], mounted: Path = _MOUNTED) -> NamedSecret:
    """The secret of this name, from the first place that has one."""
    given = environ.get("CREDENTIALS_DIRECTORY", "")
    folders = [Path(given)] if given else []
    for file in (folder / name for folder in (*folders, mounted)):
        if _is_there(file):
            return _read(file)
    if name in environ:
        return NamedSecret(environ[name])
    looked = [str(folder / name) for folder in (*folders, mounted)]
    return NamedSecret(
        problem=f"there is no secret {name}: expected {', '.join(looked)}, or an environment variable {name}"
    )


def secret_file(path: str) -> NamedSecret:
    """Return the secret in this file. If other users may read it, adds a remark."""
    if not path.startswith(("/", "~")):
        return NamedSecret(problem=f"`{path}` is no absolute path: expected one such as /etc/camgraph/password")
    try:
        file = resolve(path, Path())
    except UserError as error:
        return NamedSecret(problem=str(error))
    found = _read(file)
    return found if found.problem else NamedSecret(found.value, remark=open_to_others(file))


def open_to_others(file: Path) -> str:
    """Name the other users (beside owner and group) who may read or write a file of secrets; "" for none."""
    try:
        mode = file.stat().st_mode
    except OSError:  # it is being replaced
        return ""
    if not mode & (stat.S_IROTH | stat.S_IWOTH | stat.S_IWGRP):
        return ""
    return f"{file} contains secrets, and has mode {stat.S_IMODE(mode):04o}: keep others out with `chmod 600 {file}`"


def _is_there(file: Path) -> bool:
    """Whether there is a secret; also True if this user may not look, because reading it reports the error."""
    try:
        return file.is_file()
    except PermissionError:
        return True
    except OSError:  # a name that no file can have
        return False


def _read(file: Path) -> NamedSecret:
    other = instead_of_file(file)
    if other:
        return NamedSecret(problem=f"{file} is {other}: expected a file that holds the secret")
    try:
        data = read_small(file, most_bytes=_LARGEST)
    except OSError as error:
        if error.errno == errno.EFBIG:
            return NamedSecret(
                problem=f"{file} is larger than {_LARGEST} bytes: expected a file that holds a secret, and no more"
            )
        return NamedSecret(problem=f"{file} cannot be read: {error.strerror}")
    return NamedSecret(os.fsdecode(data).removesuffix("\n").removesuffix("\r"))
