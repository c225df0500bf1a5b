"""Which size of MultiPose's picture suits the most clips.

    python -m camgraph.tools.lab.benchmarks.picture_sides CLIP...

A CLIP is a video, or a folder of videos. A few frames of each are looked at in every size that `camgraph run` may
choose: how whole and certain each shows the people, as a share of the size that is best for this clip.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import numpy as np

from camgraph.pipeline.system.paths import ASSET_PREFIX, asset_folder, resolve
from camgraph.stages.people.preprocess import USUAL_MAX_SIDE
from camgraph.stages.video import examiner
from camgraph.stages.video.inspection import MEMORY_MB
from camgraph.tools.commands.watching.models import MULTIPOSE
from camgraph.tools.commands.watching.size import F64, SIDES, detect, shares_of_best
from camgraph.tools.lab.benchmarks.action_clips import videos_in
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.models.pose_estimators import session

FRAMES = 5


def shares(model: Path, clips: Sequence[Path]) -> dict[str, F64]:
    """Clip -> the share of the best for each of `SIDES`; clips in which nobody is seen are left out."""
    opened = session(model)
    found = {}
    for clip in clips:
        people = [person for frame in examiner.frames(clip, FRAMES, MEMORY_MB) for person in detect(opened, frame)]
        if people:
            found[clip.name] = shares_of_best(people)
    return found


def report(found: dict[str, F64]) -> Iterator[str]:
    """A table in Markdown."""
    yield f"| clip | {' | '.join(map(str, SIDES))} |"
    yield f"|---|{'---|' * len(SIDES)}"
    every = np.array(list(found.values()))
    for name, row in {**found, "**mean**": every.mean(axis=0), "**least**": every.min(axis=0)}.items():
        yield f"| {name} | {' | '.join(f'{share:.2f}' for share in row)} |"
    yield ""
    at = SIDES.index(USUAL_MAX_SIDE)
    mean, least = every[:, at].mean(), every[:, at].min()
    yield f"The usual size is {USUAL_MAX_SIDE}: {mean:.2f} of the best on average, {least:.2f} at worst."


@figure_command("benchmarks.picture_sides")
@click.argument("clips", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def main(figure: Figure, clips: tuple[Path, ...]) -> None:
    """Look at the CLIPS in every size."""
    model = resolve(ASSET_PREFIX + MULTIPOSE, asset_folder())
    lines = report(shares(model, videos_in(clips)))
    # The clips lie elsewhere on each machine, and the table names them.
    figure.publish("\n".join([figure.written(but=["clips"]), "", *lines]))


if __name__ == "__main__":
    main()
