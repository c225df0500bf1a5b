"""Events that a damaged outbox has lost are told at the end of the run, not only in its log."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from camgraph_test_stages.outboxes import make_event, open_outbox

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.items import Item
from camgraph.pipeline.messages import Event
from camgraph.pipeline.outbox.outbox_folder import outbox_folder
from camgraph.pipeline.testing import run_graph

GRAPH = """
version: 1
name: d{pid}
processes: separate
cameras: {{a: {{frames: 5}}}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src}}
  log: {{use: collect_events, from: emit, with: {{path: all}}}}
"""


def complete_event(seq: int) -> Item:
    """With all that `collect_events` writes."""
    item = make_event(seq, "a")
    assert isinstance(item.payload, Event)
    body = b'{"seq":%d,"camera":"a","epoch":0,"value":0,"id":"e%d"}' % (seq, seq)
    return replace(item, payload=replace(item.payload, body=body))


def test_a_run_whose_outbox_has_lost_events_ends_with_status_1(tmp_path: Path) -> None:
    path = tmp_path / "graph.yaml"
    path.write_text(GRAPH.format(pid=os.getpid()))
    plan = load_plan(path)
    folder = outbox_folder(plan)
    assert folder is not None
    folder.mkdir(parents=True)
    left = open_outbox(folder)
    left.accept([complete_event(n) for n in range(1000, 1010)])
    left.close()
    file = folder / "outbox.sqlite"
    data = bytearray(file.read_bytes())
    for seq in (1003, 1005, 1008):
        data[data.index(b'"seq":%d,' % seq)] ^= 1
    file.write_bytes(data)
    # Damage that shows before all processes are ready ends a run; the next one finds this note.
    (folder / "outbox.sqlite-damaged").write_text("an event is not as it was written")
    outcome, status = run_graph(plan)
    assert (outcome.status, outcome.error_ids) == (1, ("events-given-up",))
    assert outcome.problems[0].startswith("3 events were given up for log: ")
    assert status["outbox"]["log"]["given_up"] == 3
    assert len((tmp_path / "all").read_text().splitlines()) == 7 + 5
