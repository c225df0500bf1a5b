"""A graph that is asked for may turn up in a message."""

from __future__ import annotations

from camgraph.pipeline.wanted import WantedGraph


def test_it_shows_neither_its_text_nor_variables() -> None:
    wanted = WantedGraph("g.yaml", "g", text="password: Zq9", besides={"DOOR": "Zq9"})
    assert "g.yaml" in repr(wanted)
    assert "Zq9" not in repr(wanted)
