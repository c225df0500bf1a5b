"""Trains the network behind `looks_like`: `python -m camgraph.tools.lab.training --report docs/looks.md`.

Plays with other seeds than those of the training say how well it tells the classes apart on animated people;
`python -m camgraph.tools.lab.benchmarks.real_actions` says how well on real ones. None of those was seen here.
"""

from __future__ import annotations

import itertools
import time
from multiprocessing import get_context
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.system.cores import usable_cores
from camgraph.stages.rules.posture_network import FILE
from camgraph.stages.vision.posture import CLASSES
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import machine_line
from camgraph.tools.lab.training.crowds import walkers
from camgraph.tools.lab.training.windows import Examples, examples

SEEDS = 1_000_000
"""The plays of a seed begin at so many times its number; those for the test lie before."""
PLAYS_A_CROWD = 8
_TEST_SHARE = 0.1
_PLAY_S, _EPOCH_S = 0.25, 0.02
_MODEL = Path(__file__).resolve().parents[3] / "stages" / "rules" / FILE


def average_precision(given: NDArray[np.float32], true: NDArray[np.bool_]) -> float:
    """The mean precision over all thresholds at which one more true window is found."""
    hits = true[np.argsort(-given, kind="stable")]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].mean()) if hits.any() else float("nan")


def table(given: NDArray[np.float32], test: Examples) -> str:
    """A row for each class."""
    lines = ["| class | windows that show it | average precision | found at a precision of 0.9 |", "|---|---|---|---|"]
    for number, name in enumerate(CLASSES):
        known = test.known[:, number]
        of_class, true = given[known, number], test.true[known, number]
        order = np.argsort(-of_class, kind="stable")
        precision = np.cumsum(true[order]) / np.arange(1, len(order) + 1)
        good = np.flatnonzero(precision >= 0.9)
        recall = true[order][: good[-1] + 1].sum() / max(1, true.sum()) if len(good) else 0.0
        found = average_precision(of_class, true)
        lines.append(f"| `{name}` | {int(true.sum())} | {found:.2f} | {100 * recall:.0f} % |")
    return "\n".join(lines)


@figure_command("training")
@click.option(
    "--plays",
    default=4000,
    show_default=True,
    type=click.IntRange(20),
    help="Of which windows are made, about 70 each.",
)
@click.option("--epochs", default=12, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=1, show_default=True, type=click.IntRange(1))
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), default=_MODEL, help="The model to write.")
def main(figure: Figure, plays: int, epochs: int, seed: int, out: Path) -> None:
    """Train the network behind `looks_like` on animated people."""
    try:
        from camgraph.tools.lab.training.network import onnx_model, scores, trained  # noqa: PLC0415 - `--help` does without JAX
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error.name} is missing: pip install -e '.[training]'") from None
    recipe = figure.written()
    figure.takes(plays * (_PLAY_S + epochs * _EPOCH_S) / usable_cores(), f"{plays} plays, {epochs} epochs")
    first, tests = seed * SEEDS, int(plays * _TEST_SHARE)
    data, test = _together(range(first, first + plays)), _together(range(first - tests, first))
    begun_s = time.monotonic()

    def tell(epoch: int) -> None:
        click.echo(f"epoch {epoch} of {epochs}, {time.monotonic() - begun_s:.0f} s")

    weights = trained(data, epochs, seed, tell)
    about = {"description": "What people look like, by two seconds of their joints", "recipe": recipe}
    out.write_bytes(onnx_model(weights, about).SerializeToString())
    count = sum(np.size(value) for value in weights.values())
    text = (
        f"{recipe} {machine_line()}.\n\n"
        f"{len(data.windows):,} windows to learn from, and {len(test.windows):,} of other plays for this table. "
        f"{count:,} parameters, {out.stat().st_size / 1e6:.2f} MB.\n\n{table(scores(weights, test.windows), test)}"
    )
    figure.publish(text)


def _together(seeds: range) -> Examples:
    """The windows of plays and crowds, in half precision: they are most of the memory that this takes."""
    with get_context("spawn").Pool(usable_cores()) as pool:
        crowds = pool.imap(walkers, seeds[::PLAYS_A_CROWD])
        parts = itertools.chain(pool.imap(examples, seeds, chunksize=8), crowds)
        made = [(part.windows.astype(np.float16), part.true, part.known) for part in parts]
    windows, true, known = (np.concatenate(column) for column in zip(*made, strict=True))
    return Examples(windows, true, known)


if __name__ == "__main__":
    main()
