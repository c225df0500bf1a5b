"""The page of `tools.lab.proofs.prove`: written whatever came out.

What that command runs is tested in tests/test_guarantees.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from camgraph.tools.lab.proofs import prove
from camgraph.tools.lab.report_page import marks_of

MARKS = "\n".join(marks_of("proofs.prove")) + "\n"


def page_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: Mapping[str, object]) -> tuple[int, str]:
    """The exit status and the page, where the ring gives this and all else is proven."""
    page = tmp_path / "proof.md"
    page.write_text(f"by hand\n{MARKS}by hand as well\n")
    monkeypatch.setattr(prove, "matrix", lambda *_: prove.Part(["matrix"]))
    monkeypatch.setattr(prove, "kills", lambda *_: prove.Part(["kills"]))
    monkeypatch.setattr(prove, "stress", lambda _: result)
    ran = CliRunner().invoke(prove.main, ["--rounds", "3", "--report", str(page)])
    return ran.exit_code, page.read_text()


def test_what_is_proven_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = {"torn": 0, "slots_in_use": 0, "left_over": [], "noticed": 5}
    status, page = page_of(tmp_path, monkeypatch, result)
    assert status == 0
    assert page.startswith("by hand\n<!--")
    assert page.endswith("-->\nby hand as well\n")
    assert "--seconds 3 " in page
    assert "--rounds 3 " in page
    assert "--frames 2000000" in page
    assert "**All of this is proven.**" in page
    assert "- noticed: 5" in page


def test_what_is_not_proven_is_said_too_and_the_status_is_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = {"torn": 1, "slots_in_use": 0, "left_over": [], "noticed": 5}
    status, page = page_of(tmp_path, monkeypatch, result)
    assert status == 1
    assert "**Not all is proven:**" in page
    assert "- ring: {'torn': 1" in page
