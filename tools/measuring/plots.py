"""Plots as PNG files, with matplotlib if it is installed (the extra `plots`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from camgraph.pipeline.errors import EnvironmentProblem, UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#3b6ea5", "#d1803b", "#5b9a68", "#b0495a", "#7c67a8", "#8a7a55", "#4fa3a5", "#777777")


def require_matplotlib() -> None:
    """Raises EnvironmentProblem if there is none: to be called before anything is measured."""
    if not has_matplotlib():
        raise EnvironmentProblem("plots need matplotlib, which is not installed: pip install 'camgraph[plots]'")


def has_matplotlib() -> bool:
    """Whether it is installed."""
    return find_spec("matplotlib") is not None


def draw(path: Path, size: tuple[float, float], drawing: Callable[[Figure], None]) -> None:
    """Write the plot of ``drawing`` on a figure of this size (inches, 120 pixels each).

    Raises EnvironmentProblem without matplotlib, and UserError if the file cannot be written.
    """
    require_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra, and slow to import

    figure = Figure(figsize=size, dpi=120, layout="constrained")
    drawing(figure)
    try:
        figure.savefig(path, format="png", metadata={"Software": None})
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None


def plain(axes: Axes, title: str, x: str, y: str = "") -> None:
    """Axes with a title and names, a light grid, and no box."""
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
