"""`python -m camgraph.tools.lab.proofs.live_faults` writes its page whatever came out."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from camgraph.tools.lab.proofs.live_faults.proof import FaultProof
from camgraph.tools.lab.report_page import marks_of

command = importlib.import_module("camgraph.tools.lab.proofs.live_faults.__main__")
MARKS = "\n".join(marks_of("proofs.live_faults")) + "\n"


@pytest.mark.parametrize(
    ("grown", "status", "message"),
    [([], 0, "**All of this is proven.**"), (["infer.0: threads 4 -> 5"], 1, "- leak: infer.0: threads 4 -> 5")],
)
def test_writes_the_page_and_exits_by_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proof: FaultProof, grown: list[str], status: int, message: str
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"by hand\n{MARKS}")
    proof.grown = grown
    monkeypatch.setattr(command, "prove", lambda *_: proof)
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    ran = CliRunner().invoke(command.main, ["--rounds", "2", "--report", str(page)])
    assert ran.exit_code == status
    assert ran.output.startswith("about 4 min: 2 rounds of all faults, 3 at once\n")
    assert page.read_text().startswith("by hand\n<!--")
    assert message in page.read_text()
    assert "--rounds 2 " in page.read_text()
