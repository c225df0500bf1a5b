"""Installs a project of pure Python into a folder, with the metadata that pip would write, in no time."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path


def install(project: Path, target: Path) -> None:
    """Put its packages and its entry points into `target`, which then belongs on PYTHONPATH."""
    described = tomllib.loads((project / "pyproject.toml").read_text())
    about = described["project"]
    for package in described["tool"]["setuptools"]["packages"]:
        shutil.copytree(project / package, target / package)
    metadata = target / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n")
    (metadata / "entry_points.txt").write_text(entry_points_text(about["entry-points"]))


def entry_points_text(groups: Mapping[str, Mapping[str, str]]) -> str:
    """As in `entry_points.txt` of a distribution: its groups and their points in order of the alphabet."""
    sections = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in sorted(points.items()))])
        for group, points in sorted(groups.items())
    ]
    return "\n\n".join(sections) + "\n"
