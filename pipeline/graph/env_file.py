"""Files of variables, as `docker --env-file` and systemd's `EnvironmentFile=` have them: NAME=VALUE lines.

# a comment
FRONT_PASSWORD=as it stands, to the end of the line
YARD_PASSWORD="in quotes, which are taken off"
export DOOR_PASSWORD='as a shell reads it'
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path

from camgraph.pipeline.errors import GraphError, Problem
from camgraph.pipeline.graph.secret_files import open_to_others
from camgraph.pipeline.system.disk import read_text
from camgraph.pipeline.system.paths import id_of_unreadable, instead_of_file

_LINE = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=(?P<value>.*)")
_PIPE = "a pipe"
_EXPECTED = "expected NAME=VALUE, or # and a comment"
_UNCLOSED = (
    "the value begins with a quote that does not end it: close it at the end of the line, or put the whole value "
    "between quotes of the other kind"
)


def read_env_file(file: Path) -> dict[str, str]:
    """Return the variables in the file. Raises GraphError with the number of each wrong line, without its text."""
    other = instead_of_file(file)
    if other and other != _PIPE:  # a shell's <(...) is one
        text = f"is {other}: expected a file of NAME=VALUE lines"
        raise GraphError([Problem(str(file), 0, 0, text, error_id="file-kind")])
    try:
        text = read_text(file, pipe=True)
    except UnicodeDecodeError as error:
        text = f"not UTF-8 at byte {error.start}"
        raise GraphError([Problem(str(file), 0, 0, text, error_id="env-file")]) from None
    except OSError as error:
        text = f"cannot be read: {error.strerror}"
        raise GraphError([Problem(str(file), 0, 0, text, error_id=id_of_unreadable(error))]) from None
    return _variables(text, str(file))


def _variables(text: str, file: str) -> dict[str, str]:
    found: dict[str, str] = {}
    problems = []
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        match = _LINE.fullmatch(line)
        value = _without_quotes(match["value"].strip()) if match else None
        if match and value is not None:
            found[match["name"]] = value
        elif match:
            problems.append(Problem(file, number, raw.index("=") + 2, _UNCLOSED, error_id="env-file"))
        elif line and not line.startswith("#"):
            problems.append(Problem(file, number, 1, _EXPECTED, error_id="env-file"))
    if problems:
        raise GraphError(problems)
    return found


def _without_quotes(value: str) -> str | None:
    """None if a quote is not closed."""
    if value[:1] not in ("'", '"'):
        return value
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] else None


class Variables:
    """The values of `${NAME}` in a run: its env files, which are read again each time, come before its own environment.

    If a file is gone, its last values stay; `remarks` reports that, and files that others can read. A pipe, such as a
    shell's <(...), is read once.
    """

    def __init__(self, files: Sequence[Path] = (), environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._files = [file.absolute() for file in files]
        self._pipes = {file for file in self._files if instead_of_file(file) == _PIPE}
        self._known = {file: read_env_file(file) for file in self._files}

    def anew(self, besides: Mapping[str, str] | None = None) -> tuple[dict[str, str], list[str]]:
        """Return the present variables, and remarks on the files. `besides`: names that the run itself lacks.

        Raises GraphError if a file has become wrong.
        """
        remarks = []
        for file in self._files:
            if file in self._pipes:
                continue
            if self._read_again(file):
                remarks.append(open_to_others(file))
            else:
                remarks.append(f"{file} is gone: its values of before hold")
        variables = {**(besides or {}), **self._environ}
        for file in self._files:
            variables |= self._known[file]
        return variables, [remark for remark in remarks if remark]

    def _read_again(self, file: Path) -> bool:
        """False if it is gone. Raises GraphError."""
        if not os.path.isfile(file):  # noqa: PTH113 - Path.is_file raises where a folder may not be entered
            return False
        try:
            self._known[file] = read_env_file(file)
        except GraphError:
            if os.path.isfile(file):  # noqa: PTH113 - as above
                raise
            return False
        return True

    def with_environ(self, more: Mapping[str, str]) -> Variables:
        """Return the same files with more variables in the environment."""
        made = copy(self)
        made._environ = {**self._environ, **more}
        made._known = dict(self._known)
        return made

    def with_files(self, files: Sequence[Path]) -> Variables:
        """Return the same environment with other files. Raises GraphError if one is wrong."""
        return Variables(files, self._environ)
