"""Python and the packages."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distributions, requires, version

from packaging.requirements import Requirement

from tools.doctor.finding import Finding

_TESTED = ((3, 11), (3, 13))
_MERGED = re.compile(r"[-_.]+")


def look_at_python() -> Iterator[Finding]:
    """Its version, and the machine."""
    found = f"Python {platform.python_version()} on {platform.machine()} {platform.system()}"
    if not _TESTED[0] <= sys.version_info[:2] <= _TESTED[1]:
        yield Finding("warning", "python", found, "it was not tried with this one; 3.11 to 3.13 were")
    elif platform.system() != "Linux":
        yield Finding("warning", "python", found, "the runtime is for Linux; `processes: one` should work, unverified")
    else:
        yield Finding("ok", "python", found)


def look_at_requirements(package: str = "camgraph") -> Iterator[Finding]:
    """Whether what the package needs is there, in versions that it takes."""
    try:
        wanted = [Requirement(text) for text in requires(package) or ()]
    except PackageNotFoundError:
        yield Finding("warning", "packages", f"{package} is not installed, it runs from its folder", "pip install -e .")
        return
    problems = [text for one in wanted if _applies(one) and (text := _problem(one))]
    if problems:
        yield Finding("wrong", "packages", "; ".join(problems), f"pip install --upgrade {package}")
    else:
        yield Finding("ok", "packages", f"{package} {version(package)} and all that it needs")


def _applies(wanted: Requirement) -> bool:
    return wanted.marker is None or wanted.marker.evaluate({"extra": ""})


def _problem(wanted: Requirement) -> str:
    try:
        there = version(wanted.name)
    except PackageNotFoundError:
        return f"{wanted.name} is missing"
    fits = wanted.specifier.contains(there, prereleases=True)
    return "" if fits else f"{wanted.name} is {there}, expected {wanted.specifier}"


def look_at_runtimes(installed: Iterable[Distribution] | None = None) -> Iterator[Finding]:
    """ONNX Runtime comes in several packages that overwrite one another: only one may be there."""
    names = {_name(one): one.version for one in (distributions() if installed is None else installed)}
    found = {name: text for name, text in names.items() if name == "onnxruntime" or name.startswith("onnxruntime-")}
    runtimes = {name: text for name, text in found.items() if not name.startswith("onnxruntime-ep-")}
    shown = ", ".join(f"{name} {text}" for name, text in sorted(runtimes.items()))
    if not runtimes:
        yield Finding("wrong", "onnxruntime", "not installed", "pip install onnxruntime-gpu")
    elif len(runtimes) > 1:
        cure = f"pip uninstall -y {' '.join(sorted(runtimes))} && pip install onnxruntime-gpu"
        yield Finding("wrong", "onnxruntime", f"installed more than once ({shown}): they overwrite one another", cure)
    else:
        yield Finding("ok", "onnxruntime", shown)


def _name(one: Distribution) -> str:
    return _MERGED.sub("-", one.metadata["Name"] or "").lower()
