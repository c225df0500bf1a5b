"""How well the tracks in a file keep true identities.

    python -m camgraph.tools.lab.benchmarks.track_accuracy.score GT TRACKS

Both are text of MOTChallenge; `sink_tracks` writes such files. Frames in which one of them has nobody count as well.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from camgraph.tools.lab.benchmarks.track_accuracy.measures import Labelled, measure
from camgraph.tools.lab.benchmarks.track_accuracy.street import read_mot

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("truth", type=_FILE)
@click.argument("tracks", type=_FILE)
def main(truth: Path, tracks: Path) -> None:
    """The measures of TRACKS against TRUTH."""
    truths, found = read_mot(truth), read_mot(tracks)
    frames = max(len(truths), len(found))
    one = measure(_filled(truths, frames), _filled(found, frames))
    click.echo(f"IDF1 {100 * one.idf1:.1f}, HOTA {100 * one.hota:.1f}, MOTA {100 * one.mota:.1f}")
    click.echo(f"ids passed on: {one.passed}, switches: {one.switches}, {frames} frames")


def _filled(rows: list[Labelled], frames: int) -> list[Labelled]:
    nobody = np.empty(0, np.int64), np.empty((0, 4))
    return rows + [nobody] * (frames - len(rows))


if __name__ == "__main__":
    main()
