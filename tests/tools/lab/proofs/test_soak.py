"""What is made of a soak; the soak itself is in tests/live."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from camgraph.tools.lab.proofs import soak
from camgraph.tools.lab.proofs.soak import faults_of, report
from camgraph.tools.lab.proofs.trials.delivery import Delivered
from camgraph.tools.lab.proofs.trials.soaking import Plan, Soaked
from camgraph.tools.lab.proofs.trials.verdict import Bounds
from camgraph.tools.lab.report_page import marks_of
from camgraph.tools.measuring.processes import Member, Sample
from camgraph.tools.measuring.processor_time import CpuTime


def soaked() -> Soaked:
    made = Soaked(Plan(60.0, cameras=2), back_s=1.5, exit_status=0)
    made.cpu = [CpuTime(0, 0, 0), CpuTime(60, 66, 60)]
    camera = {"frames": 600, "drops_by_reason": {"damaged": 3}, "losses": 2}
    made.status = {"cameras": {"c0": camera, "c1": {**camera, "frames": 0}}}
    made.delivered = Delivered(5)
    return made


def test_one_that_broke_off_has_a_page_that_says_so() -> None:
    made = soaked()
    made.back_s, made.broke = None, "all live: not so within 90 s"
    verdict, faults = faults_of(made, Bounds())
    assert "camera c1 brought no frame" in faults
    assert any("expected three points or more" in fault for fault in faults)
    assert "after the last fault: all live: not so within 90 s" in faults
    page = report(made, verdict, faults)
    assert "**Not all is as it should be:**" in page
    assert "until all cameras were live and all processes ran: never." in page
    assert "Other processes took 0.10 of" in page
    assert "| c0 | 600 | damaged 3 | 2 |" in page


def test_the_page_of_an_undisturbed_run_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Plan] = []

    def soak_it(plan: Plan, *_: object) -> Soaked:
        plans.append(plan)
        made = soaked()
        made.plan = plan
        members = (Member(7, "supervisor", 9000, 40_000, 4, {}),)
        made.samples = [Sample(float(n), members, 0, 0) for n in range(60)]
        return made

    page = tmp_path / "soak.md"
    marks = marks_of("proofs.soak, undisturbed")
    page.write_text("\n".join(marks_of("proofs.soak")) + "\n")
    monkeypatch.setattr(soak, "soak", soak_it)
    call = ["--minutes", "1", "--cameras", "2", "--undisturbed", "--report", str(page)]
    assert "the page has no place for the report" in CliRunner().invoke(soak.main, call).output
    assert plans == []
    page.write_text(page.read_text() + "\n".join(marks))
    CliRunner().invoke(soak.main, call)
    text = page.read_text()
    assert "nothing was done to them" in text
    assert "In memory of all (MB), this run cannot tell a slope below 0.0 MB an hour from none." in text
    assert "What was done to it" not in text
    assert not plans[0].is_disturbed
    assert text.index("Written by") > text.index(marks[0])


def test_deaths_that_nobody_ordered_are_found() -> None:
    made = soaked()
    made.killed, made.deaths = Counter(log=1), {"log, signal 9": 1, "infer, signal 11": 1}
    assert "1 processes were killed, and 2 died: infer, signal 11 1, log, signal 9 1" in faults_of(made, Bounds())[1]


def test_the_page_is_written_whatever_came_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "soak.md"
    page.write_text("\n".join(["by hand", *marks_of("proofs.soak"), "more\n"]))
    monkeypatch.setattr(soak, "soak", lambda *_: soaked())
    ran = CliRunner().invoke(soak.main, ["--minutes", "1", "--cameras", "2", "--report", str(page)])
    assert ran.exit_code == 1
    assert page.read_text().startswith("by hand\n<!--")
    assert page.read_text().endswith("-->\nmore\n")
    assert "- camera c1 brought no frame" in page.read_text()
    assert "--minutes 1 " in page.read_text()
