"""A model's profile as a picture: time by operator, and the heaviest nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tools.measuring.plots import COLOURS, draw, plain
from tools.models.profile.events import Profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST = 14
_LONGEST_NAME = 34


def plot(profile: Profile, title: str, path: Path) -> None:
    """Raises EnvironmentProblem without matplotlib."""
    draw(path, (11.0, 5.0), lambda figure: _draw(profile, title, figure))


def _draw(profile: Profile, title: str, figure: Figure) -> None:
    figure.suptitle(title, fontsize=10)
    left, right = figure.subplots(1, 2)
    groups = profile.by_operator()[:_MOST]
    _bars(left, [group.name for group in groups], [group.ms for group in groups], [group.share for group in groups])
    plain(left, "by operator", "ms a run")
    nodes = profile.heaviest[:_MOST]
    providers = [group.name for group in profile.by_provider()]
    colours = [COLOURS[providers.index(node.provider) % len(COLOURS)] for node in nodes]
    shares = [profile.share(node.ms) for node in nodes]
    _bars(right, [_short(node.name) for node in nodes], [node.ms for node in nodes], shares, colours)
    plain(right, f"the heaviest of {len(profile.nodes)} nodes", "ms a run")


def _bars(
    axes: Axes,
    names: Sequence[str],
    values: Sequence[float],
    shares: Sequence[float],
    colours: Sequence[str] = COLOURS[:1],
) -> None:
    places = range(len(names))
    axes.barh(places, values, height=0.7, color=list(colours))
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    for place, value, share in zip(places, values, shares, strict=True):
        axes.text(value, place, f" {share:.0%}" if share >= 0.01 else "", va="center", fontsize=8)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else "..." + name[-_LONGEST_NAME:]
