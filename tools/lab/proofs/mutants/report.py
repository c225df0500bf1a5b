"""What became of the mutants, as a part of a page."""

from __future__ import annotations

from collections.abc import Iterator

from camgraph.tools.lab.proofs.mutants.trial import Proof, Tried


def report(proof: Proof) -> str:
    """The verdict, the problems, and a table of all mutants. In Markdown."""
    wrong = proof.wrong
    verdict = [f"- {one}" for one in wrong] or [f"**Each of {len(proof.tried)} faults is caught by a test.**"]
    took_s = sum(one.seconds for one in proof.tried)
    slowest_s = max((one.seconds for one in proof.tried), default=0.0)
    times = (
        f"Without a fault, the {proof.tests} tests take {proof.unchanged_s:.0f} s together. With the faults, one after "
        f"the other, they take {took_s:.0f} s, at most {slowest_s:.0f} s for one."
    )
    return "\n".join([*verdict, "", times, "", *_table(proof)])


def _table(proof: Proof) -> Iterator[str]:
    yield "| fault | area | what breaks | caught by | s |"
    yield "|---|---|---|---|---|"
    for one in proof.tried:
        yield f"| {one.mutant.id} | {one.mutant.area} | {one.mutant.breaks} | {_outcome(one)} | {one.seconds:.0f} |"


def _outcome(one: Tried) -> str:
    return f"**{one.problem.partition(':')[0]}**" if one.problem else f"`{one.caught_by}`"
