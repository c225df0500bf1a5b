"""A model's profile as people read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stages.vision.foreign_text import shown
from tools.models.profile.events import Group, Profile

_ASYNCHRONOUS = ("CUDAExecutionProvider", "TensorrtExecutionProvider", "DmlExecutionProvider")


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
