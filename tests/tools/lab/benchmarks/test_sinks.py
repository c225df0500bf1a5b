from __future__ import annotations

import pytest
from click.testing import CliRunner

from camgraph.tools.lab.benchmarks.sinks import CASES, Figures, event, main, table


@pytest.mark.parametrize("name", ["`sink_csv`", "`sink_socket`, connected", "`sink_webhook`, `mode: batched`"])
@pytest.mark.processes
def test_every_event_of_a_burst_arrives(name) -> None:
    result = CliRunner().invoke(main, ["--events", "200", "--only", name])
    assert result.exit_code == 0, result.output
    [row] = [line for line in result.output.splitlines() if line.startswith(f"| {name}")]
    assert row.endswith("| 100.0% |")


def test_a_case_that_nobody_has_is_a_mistake() -> None:
    result = CliRunner().invoke(main, ["--only", "sink_pigeon"])
    assert result.exit_code == 1
    assert "no case has 'sink_pigeon' in its name" in result.output


def test_the_table() -> None:
    rows = table([Figures("`sink_x`", 2.0, 5000.4, 321.0, 0.999)], 10_000)
    assert rows[-1] == "| `sink_x` | 2.00 s | 5,000 | 321 | 99.9% |"


def test_cases_have_names_of_their_own_and_events_differ() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert event(1).body != event(2).body
    assert 800 < len(event(1).body) < 1000
