"""A model's profile as people read it: in tables, and as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from camgraph.stages.vision.foreign_text import shown
from camgraph.tools.measuring.plots import COLOURS, draw, plain
from camgraph.tools.models.profile.events import Group, Profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ASYNCHRONOUS = ("CUDAExecutionProvider", "TensorrtExecutionProvider", "DmlExecutionProvider")
_MOST_BARS = 14
_LONGEST_NAME = 34


def lines(profile: Profile, runs_on: str, most_nodes: int) -> Iterator[str]:
    """Sums, then tables by provider and by operator, then the heaviest nodes; their names are the model's words."""
    return map(shown, _lines(profile, runs_on, most_nodes))


def _lines(profile: Profile, runs_on: str, most_nodes: int) -> Iterator[str]:
    outside_ms = max(0.0, profile.run_ms - profile.node_ms)
    yield f"- runs on {runs_on}; opened in {profile.loading_ms:.0f} ms"
    yield (
        f"- a run takes {profile.run_ms:.2f} ms (median of {profile.runs}): {profile.node_ms:.2f} ms in nodes, "
        f"{outside_ms:.2f} ms between them"
    )
    if profile.arena_bytes:
        yield (
            f"- memory for values between nodes: {_mb(profile.peak_bytes)} MB in use at most, of "
            f"{_mb(profile.arena_bytes)} MB that ONNX Runtime holds for them"
        )
    if any(group.name in _ASYNCHRONOUS for group in profile.by_provider()):
        yield "- nodes on a device are started, not waited for: their times are those of starting them"
    yield ""
    yield from _table("provider", profile.by_provider())
    yield ""
    yield from _table("operator", profile.by_operator())
    yield ""
    yield from _heaviest(profile, most_nodes)


def _table(title: str, groups: Sequence[Group]) -> Iterator[str]:
    yield f"| {title} | nodes | ms a run | share | weights MB | written MB |"
    yield "|---|---|---|---|---|---|"
    for one in groups:
        yield (
            f"| {one.name} | {one.nodes} | {one.ms:.3f} | {one.share:.1%} | {_mb(one.weights)} | {_mb(one.outputs)} |"
        )


def _heaviest(profile: Profile, most: int) -> Iterator[str]:
    yield "| node | operator | ms a run | share | shapes |"
    yield "|---|---|---|---|---|"
    for node in profile.heaviest[:most]:
        yield f"| {node.name} | {node.operator} | {node.ms:.3f} | {profile.share(node.ms):.1%} | {node.shapes} |"


def _mb(size: int) -> str:
    return f"{size / 1e6:.2f}"


def plot(profile: Profile, title: str, path: Path) -> None:
    """Time by operator, and the heaviest nodes. Raises EnvironmentProblem without matplotlib."""
    draw(path, (11.0, 5.0), lambda figure: _draw(profile, title, figure))


def _draw(profile: Profile, title: str, figure: Figure) -> None:
    figure.suptitle(title, fontsize=10)
    left, right = figure.subplots(1, 2)
    groups = profile.by_operator()[:_MOST_BARS]
    _bars(left, [group.name for group in groups], [group.ms for group in groups], [group.share for group in groups])
    plain(left, "by operator", "ms a run")
    nodes = profile.heaviest[:_MOST_BARS]
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
