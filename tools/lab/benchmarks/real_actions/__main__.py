"""Watch real clips and compare what is told with the truth.

python -m camgraph.tools.lab.benchmarks.real_actions [--clips FOLDER] [--cache FOLDER] [--rules FILE] [--report
docs/actions.md]

The people that the model finds in a clip are kept in the folder of `--cache`, at the highest rate that is asked for.
Finding takes longer than the clips last; if you stop it, it goes on with the next clip later. Afterwards, a rule is
tried quickly: `--rules my_rules.yaml --kept --list`. To tune on some rooms and test on others, name folds: `--fold 1`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import click

from camgraph.stages.rules.rule_set import read_rules
from camgraph.tools.commands.watching.models import MULTIPOSE, model_file, named_model
from camgraph.tools.lab.benchmarks.false_alarms import asked
from camgraph.tools.lab.benchmarks.real_actions.incidents import judged
from camgraph.tools.lab.benchmarks.real_actions.people import Finder, thinned
from camgraph.tools.lab.benchmarks.real_actions.report import Result, listed, tables
from camgraph.tools.lab.benchmarks.real_actions.truth import Clip, folds_of, read_truth
from camgraph.tools.lab.figure import Figure, figure_command

RATES = (30.0, 10.0, 5.0)
"""30 is all frames of most clips."""
FOLDS = 5


def clips_folder() -> Path:
    """Where the tests have their clips, too."""
    return Path(os.environ.get("CAMGRAPH_TEST_DATA", "test-data")) / "actions"


def results_of(
    clips: Sequence[Clip], folder: Path, finder: Finder, rates: Sequence[float], rules: dict[str, Any]
) -> list[Result]:
    """One for each frame rate. `rules`: the settings of the stage `rules`."""
    results = [Result(fps) for fps in rates]
    actions = actions_of(rules)
    for clip in clips:
        seen = finder.find(folder / clip.file, max(rates))
        for result in results:
            result.take(clip, judged(thinned(seen, result.fps), finder.scores, rules), actions)
    return results


def actions_of(rules: dict[str, Any]) -> list[str]:
    """What events call the actions of these rules."""
    if "file" in rules:
        ready = read_rules(Path(rules["file"])).rules.values()
        return list(dict.fromkeys(one.action for one in ready))
    return [rule["use"] for rule in rules["rules"]]


def rules_for(file: Path | None, actions: Sequence[str]) -> dict[str, Any]:
    """The settings of the stage: a file of rules, or actions of the library with their usual values."""
    if file:
        return {"file": str(file.absolute())}
    return {"rules": [{"use": action} for action in actions or asked()]}


def chosen(
    clips: Iterable[Clip], patterns: Sequence[str], folds: Sequence[int], happening: str | None = None
) -> Iterator[Clip]:
    """The clips whose names fit one of these patterns, of these folds, with this action; of all if there are none."""
    every = list(clips)
    numbered = folds_of(every, FOLDS)
    for clip in every:
        fits = not patterns or any(fnmatch(clip.stem, pattern) for pattern in patterns)
        if happening and not clip.of(happening, sure=True):
            continue
        if fits and (not folds or any(clip in fold for fold in numbered if fold.number in folds)):
            yield clip


def _find(clips: Sequence[Clip], folder: Path, finder: Finder, fps: float) -> None:
    """Find the people of all clips of which nobody has been found yet, and say how far it is."""
    left = [clip for clip in clips if not finder.is_kept(folder / clip.file, fps)]
    for number, clip in enumerate(left, start=1):
        begun = time.monotonic()
        finder.find(folder / clip.file, fps)
        click.echo(f"{number} of {len(left)}: {clip.stem}, {time.monotonic() - begun:.0f} s", err=True)


@figure_command("benchmarks.real_actions")
@click.option("--clips", "folder", type=click.Path(path_type=Path), help="The clips, with truth.yaml beside them.")
@click.option("--model", default=MULTIPOSE, show_default=True, help="A pose model: a file, or the name of an asset.")
@click.option(
    "--cache",
    default="out/real_actions",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The folder that keeps whom the model has found.",
)
@click.option(
    "--rate",
    "rates",
    multiple=True,
    type=click.FloatRange(1, 240),
    default=RATES,
    show_default=True,
    help="Take at most so many frames a second; may be given several times.",
)
@click.option(
    "--rules",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Rules to try; by default the actions of the library.",
)
@click.option("--action", "actions", multiple=True, help="Only this action; may be given several times.")
@click.option("--only", "patterns", multiple=True, help="Only clips whose names fit, such as 'room*'.")
@click.option("--with", "happening", help="Only clips in which somebody surely does this, such as `fall`.")
@click.option("--fold", "folds", multiple=True, type=click.IntRange(1, FOLDS), help="Only clips of this fold.")
@click.option("--kept", is_flag=True, help="Only clips in which people have been found before.")
@click.option("--find-only", is_flag=True, help="Find people and keep them, and judge nothing.")
@click.option("--list", "lists", is_flag=True, help="Also list all that is missed or false.")
def main(
    figure: Figure,
    *,
    folder: Path | None,
    model: str,
    cache: Path,
    rates: tuple[float, ...],
    rules: Path | None,
    actions: tuple[str, ...],
    patterns: tuple[str, ...],
    happening: str | None,
    folds: tuple[int, ...],
    kept: bool,
    find_only: bool,
    lists: bool,
) -> None:
    """Compare what the library of actions tells of real clips with the truth."""
    place = folder or clips_folder()
    finder = Finder(model_file(named_model(model, Path.cwd())), cache)
    all_clips = read_truth(place)
    clips = list(chosen(all_clips, patterns, folds, happening))
    if kept:
        clips = [clip for clip in clips if finder.is_kept(place / clip.file, max(rates))]
    if not clips:
        raise click.ClickException(f"{place}: none of its clips is left to be judged")
    _find(clips, place, finder, max(rates))
    if find_only:
        return
    results = results_of(clips, place, finder, rates, rules_for(rules, actions))
    for line in (line for result in results if lists for line in listed(result)):
        click.echo(line)
    text = tables(results, folds_of(all_clips, FOLDS), all_clips)
    figure.publish(f"{figure.written()}\n\n{text}")


if __name__ == "__main__":
    main()
