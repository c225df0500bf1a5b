from __future__ import annotations

from pathlib import Path

from camgraph.tools.lab.proofs.trials.tail import Tail


def test_a_line_comes_once_and_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = Tail(path)
    assert tail.lines() == []
    path.write_text("one\ntw")
    assert tail.lines() == ["one"]
    assert tail.lines() == []
    with path.open("a") as file:
        file.write("o\nthree\n")
    assert tail.lines() == ["two", "three"]
