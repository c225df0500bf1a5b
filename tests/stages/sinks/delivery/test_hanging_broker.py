"""A run with brokers that take connections and never answer: the other sinks go on, and the run can be stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from camgraph_test_stages.hostile import hostile
from camgraph_test_stages.waiting import until

SINKS = {
    "sink_redis": 'address: "redis://127.0.0.1:PORT"',
    "sink_nats": 'address: "nats://127.0.0.1:PORT", stream: S',
    "sink_amqp": 'address: "amqp://127.0.0.1:PORT", queue: q',
    "sink_mqtt": 'address: "mqtt://127.0.0.1:PORT"',
}
GRAPH = """
version: 1
name: ward
drain_s: 3
processes: {processes}
cameras: {{a: {{frames: 1000000, live: true, pace_ms: 20}}}}
stages:
  numbers: {{use: count_source, each: cameras}}
  emit:    {{use: emit, from: numbers}}
  kept:    {{use: sink_jsonl, from: emit, with: {{path: kept.jsonl}}}}
"""


def cli(folder: Path, *words: str) -> list[str]:
    return ["env", f"CAMGRAPH_STATE_DIR={folder / 'state'}", sys.executable, "-m", "camgraph.tools.cli", *words]


@pytest.mark.parametrize(
    ("processes", "uses"),
    [("separate", list(SINKS)), ("compact", list(SINKS)), ("one", ["sink_amqp"])],
    ids=["separate", "compact", "one"],
)
def test_a_run_with_brokers_that_hang(tmp_path: Path, processes: str, uses: list[str]) -> None:
    """In one process the whole run waits for each sink, so there is only one."""
    with ExitStack() as stack:
        servers = {use: stack.enter_context(hostile(lambda _: iter(()))) for use in uses}
        sinks = [
            f"  {use}: {{use: {use}, from: emit, with: {{{SINKS[use].replace('PORT', str(server.port))}}}}}\n"
            for use, server in servers.items()
        ]
        (tmp_path / "ward.yaml").write_text(GRAPH.format(processes=processes) + "".join(sinks))
        kept, log = tmp_path / "kept.jsonl", tmp_path / "log"
        with log.open("w") as to, subprocess.Popen(cli(tmp_path, "run", "ward.yaml"), stderr=to, cwd=tmp_path) as run:
            try:
                until(lambda: all(one.connections > 1 for one in servers.values()), why=log.read_text)
                if processes != "one":
                    seen = len(kept.read_text().splitlines())
                    until(lambda: len(kept.read_text().splitlines()) > seen + 20, why=log.read_text)
            finally:
                run.send_signal(signal.SIGINT)
                status = run.wait(120)
        assert status in (0, 1, 3, 130), log.read_text()
        assert "process_died" not in log.read_text()
        assert "process_hangs" not in log.read_text()
    told = subprocess.run(cli(tmp_path, "outbox", "status", "--json"), capture_output=True, check=True, cwd=tmp_path)
    backlogs = {one["sink"]: one for one in json.loads(told.stdout)["ward"]}
    for use in uses:
        assert backlogs[use]["waiting"] > 0
        assert backlogs[use]["dead_letters"] == 0
