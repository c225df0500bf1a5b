"""Compares two saved runs: which configurations became faster or slower, and whether that is more than noise. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from camgraph.stages.vision.foreign_text import shown
from camgraph.tools.models.bench.machine import disturbance
from camgraph.tools.models.bench.record import Measured, Record

Verdict = Literal["faster", "slower", "within the noise", "too few rounds"]
SIGNIFICANT = 0.01
"""So rarely would rounds of equal speed be so far apart by chance (Mann and Whitney)."""
LEAST_ROUNDS = 5
"""With fewer, even rounds that do not overlap at all are no proof."""
_HEAD = "| configuration | before | after | after / before | memory | verdict |"


@dataclass(frozen=True, slots=True)
class Compared:
    """A configuration that both runs have."""

    before: Measured
    after: Measured

    @property
    def ratio(self) -> float:
        """Of the medians of frames a second: above 1 it became faster."""
        return self.after.median / self.before.median

    @property
    def verdict(self) -> Verdict:
        """Whether the rounds of one are really above those of the other."""
        before, after = self.before.frames_per_s, self.after.frames_per_s
        if min(len(before), len(after)) < LEAST_ROUNDS:
            return "too few rounds"
        if chance_of(before, after) >= SIGNIFICANT:
            return "within the noise"
        return "faster" if self.ratio > 1 else "slower"


def chance_of(one: Sequence[float], other: Sequence[float]) -> float:
    """How often samples of one distribution differ as much as these two, or more: the exact test of Mann and Whitney,
    two-sided."""
    wins = sum((a > b) + (a == b) / 2 for a in one for b in other)
    pairs = len(one) * len(other)
    orders = _orders(len(one), len(other))
    return min(1.0, 2 * sum(orders[int(max(wins, pairs - wins)) :]) / sum(orders))


def _orders(one: int, other: int) -> list[int]:
    """In how many orders of two samples of these sizes the first sample wins 0, 1, 2, ... pairs."""
    # The coefficients of the Gaussian binomial: a product of (1 - q^(other + i)) / (1 - q^i).
    counts = [1] + [0] * (one * other)
    for i in range(1, one + 1):
        for wins in range(one * other, other + i - 1, -1):
            counts[wins] -= counts[wins - other - i]
        for wins in range(i, one * other + 1):
            counts[wins] += counts[wins - i]
    return counts


def compare(before: Record, after: Record) -> list[Compared]:
    """The configurations of both, in the order of the first."""
    there = {one.name: one for one in after.measured}
    return [Compared(one, there[one.name]) for one in before.measured if one.name in there]


def lines(before: Record, after: Record) -> Iterator[str]:
    """The comparison as people read it. Saved runs may hold anybody's words."""
    return map(shown, _lines(before, after))


def _lines(before: Record, after: Record) -> Iterator[str]:
    for name, record in (("before", before), ("after", after)):
        machine = record.machine
        yield (
            f"- {name}: {record.model}, {record.size[0]} x {record.size[1]}, {record.at}, {machine.cores} cores of "
            f"{machine.processor}, ONNX Runtime {machine.onnxruntime}"
        )
        if warning := disturbance(machine):
            yield f"- {name}: {warning}"
    yield from (f"- {difference}" for difference in differences(before, after))
    yield ""
    found = compare(before, after)
    if not found:
        yield "the two runs have no configuration in common"
        return
    yield _HEAD
    yield "|---|---|---|---|---|---|"
    yield from map(_line, found)
    yield ""
    yield (
        f"Frames a second, medians of {len(found[0].before.frames_per_s)} and {len(found[0].after.frames_per_s)} "
        f"rounds. *faster*, *slower*: rounds of equal speed are so far apart less than {SIGNIFICANT:.0%} of the time. "
        "What the machine did besides in one of the two runs is not known to it."
    )


def differences(before: Record, after: Record) -> Iterator[str]:
    """Other differences between the runs."""
    if before.sha256 != after.sha256:
        yield "the model's file is another one"
    if before.size != after.size:
        yield "the pictures have another size: the ratios say little"
    if before.precision != after.precision:
        yield f"the precision is {after.precision} instead of {before.precision}"
    if (before.machine.cores, before.machine.processor) != (after.machine.cores, after.machine.processor):
        yield "it is another machine"
    if before.machine.onnxruntime != after.machine.onnxruntime:
        yield "ONNX Runtime is another one"
    names = {one.name for one in before.measured} ^ {one.name for one in after.measured}
    if names:
        yield f"only one of them has: {'; '.join(sorted(names))}"


def _line(one: Compared) -> str:
    peaks = one.before.peak_mb, one.after.peak_mb
    memory = f"{peaks[1] / peaks[0]:.2f}" if peaks[0] and peaks[1] else "-"
    return (
        f"| {one.after.name} | {one.before.median:.1f} | {one.after.median:.1f} | {one.ratio:.2f} | {memory} "
        f"| {one.verdict} |"
    )
