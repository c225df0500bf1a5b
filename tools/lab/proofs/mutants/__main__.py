"""Whether each promise has a test: `python -m camgraph.tools.lab.proofs.mutants --report docs/proof.md`.

Faults of one line (`mutants.yaml`) are put into a copy of the checkout, one after the other, and the tests that are
named beside each must fail. Before that, all of these tests must pass.
"""

from __future__ import annotations

from pathlib import Path

import click

from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.proofs.mutants.mutant import Mutant, read_mutants
from camgraph.tools.lab.proofs.mutants.report import report
from camgraph.tools.lab.proofs.mutants.trial import Tried, prove

_ROOT = Path(__file__).resolve().parents[4]
_UNCHANGED_S, _MUTANT_S = 40.0, 5.0
"""About what all tests together take without a mutant, and what those of one mutant take with it."""


def _chosen(only: tuple[str, ...], areas: tuple[str, ...]) -> list[Mutant]:
    """The mutants of these ids and areas; all by default. Raises BadParameter for a name that none has."""
    mutants = read_mutants()
    unknown = {*only} - {one.id for one in mutants} | {*areas} - {one.area for one in mutants}
    if unknown:
        known = ", ".join(dict.fromkeys(one.area for one in mutants))
        raise click.BadParameter(f"no mutant has {', '.join(sorted(unknown))}; the areas are: {known}")
    return [one for one in mutants if (not only or one.id in only) and (not areas or one.area in areas)]


@figure_command("proofs.mutants")
@click.option("--only", multiple=True, metavar="ID", help="Try this mutant alone; may be given several times.")
@click.option("--area", "areas", multiple=True, help="Try those of this area alone; may be given several times.")
def main(figure: Figure, only: tuple[str, ...], areas: tuple[str, ...]) -> None:
    """Try each mutant; status 1 if one is not caught, its text is not there once, or a named test is missing."""
    mutants = _chosen(only, areas)
    figure.takes(_UNCHANGED_S + _MUTANT_S * len(mutants), f"{len(mutants)} mutants, each with its tests")
    proof = prove(_ROOT, mutants, _say)
    figure.publish(f"{figure.head()}\n\n{report(proof)}", proof.wrong)


def _say(tried: Tried) -> None:
    click.echo(f"{tried.mutant.id}: {tried.problem or tried.caught_by} ({tried.seconds:.0f} s)")


if __name__ == "__main__":
    main()
