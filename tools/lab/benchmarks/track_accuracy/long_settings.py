"""Settings of the other trackers for long scenes, chosen beforehand and kept in `long_settings.json`.

    python -m camgraph.tools.lab.benchmarks.track_accuracy.long_settings

At each rate each of them has the best of several settings (`peers.settings_of`), by IDF1 over scenes of even seeds.
The report has odd seeds.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from camgraph.tools.lab.benchmarks.track_accuracy import peers
from camgraph.tools.lab.benchmarks.track_accuracy.__main__ import Key, probes_of
from camgraph.tools.lab.benchmarks.track_accuracy.long_scenes import LONG_SCENES, long_scene
from camgraph.tools.lab.benchmarks.track_accuracy.sequences import Jitter, Sequence

FILE = Path(__file__).with_name("long_settings.json")
RATES = (25.0, 12.5, 8.0, 5.0, 3.0)


def chosen(environment: str, fps: float) -> list[peers.Run]:
    """The trackers of an environment with their settings at that rate, over the first scene."""
    rows = [row for row in json.loads(FILE.read_text()) if row["fps"] == fps]
    names = peers.ENVIRONMENTS[environment][1]
    return [
        peers.Run(row["tracker"], row["parameters"], row["min_score"], [0]) for row in rows if row["tracker"] in names
    ]


def row_of(fps: float, run: peers.Run) -> Mapping[str, Any]:
    """As it stands in the file."""
    return {"tracker": run.tracker, "fps": fps, "min_score": run.min_score, "parameters": dict(run.parameters)}


@click.command()
@click.option("--seed", "seeds", type=int, multiple=True, default=(0,), show_default=True, help="Even ones.")
@click.option("--minutes", default=0.75, show_default=True, type=click.FloatRange(0.1), help="Of each scene.")
@click.option(
    "--tries", default=14, show_default=True, type=click.IntRange(1), help="Settings of each tracker and rate."
)
def main(seeds: tuple[int, ...], minutes: float, tries: int) -> None:
    """Choose settings of the other trackers, and write them."""
    cases: dict[Key, Sequence] = {}
    for scene in (long_scene(name, seed, minutes) for name in LONG_SCENES for seed in seeds):
        cases |= {(scene.name, fps, 1): Jitter().of(scene.at(fps), 1) for fps in RATES}
    rows = []
    for environment in peers.ENVIRONMENTS:
        for (_, fps), probes in probes_of(environment, cases, tries, install=True).items():
            best = max(probes, key=lambda probe: statistics.mean(probe.idf1.values()))
            rows.append(row_of(fps, best.run))
        click.echo(f"{environment}: done", err=True)
    FILE.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
