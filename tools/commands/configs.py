"""The folder of the graphs, rules and pages of documentation that come with camgraph: `configs`, beside the package in
the repository as well as after installation. `configs/docs` is the repository's `docs`.
"""

from __future__ import annotations

from pathlib import Path

from camgraph.pipeline.errors import EnvironmentProblem

_FOLDER = Path(__file__).resolve().parents[2] / "configs"


def config_path(name: str) -> Path:
    """The file, or folder, of this name. Raises EnvironmentProblem if the installation lacks it."""
    path = _FOLDER / name
    if not path.exists():
        raise EnvironmentProblem(
            f"{path}: this file of camgraph is missing; install camgraph again", error_id="installation-damaged"
        )
    return path
