"""The benchmark beside others: a short real run of those who need no installation, on a model that costs nothing."""

from __future__ import annotations

import json
from pathlib import Path

import av
import pytest
from click.testing import CliRunner

from camgraph.tools.lab.benchmarks.peers import __main__ as bench_peers
from camgraph.tools.lab.benchmarks.peers.clip import write_clip
from camgraph.tools.lab.benchmarks.peers.contestants import BARE, PEERS
from camgraph.tools.lab.benchmarks.peers.figures import Row
from camgraph.tools.lab.benchmarks.peers.graph import answer_of
from camgraph.tools.lab.benchmarks.peers.page import plot
from camgraph.tools.lab.report_page import marks_of
from camgraph.tools.measuring.plots import has_matplotlib

pytestmark = pytest.mark.processes

COMPACT, LOOP = "camgraph, compact", "OpenCV + ONNX Runtime loop"


def test_bare_loop_camgraph_and_the_plain_loop_do_the_same_work(two_people: Path, clip: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("\n".join(marks_of("benchmarks.peers")) + "\n")
    figures = tmp_path / "figures.json"
    ran = CliRunner().invoke(
        bench_peers.main,
        [
            "--model", str(two_people), "--clip", str(clip), "--frames", "16", "--count", "2", "--rounds", "1",
            "--picture", "160", "120", "--size", "64", "64", "--only", COMPACT, "--only", LOOP,
            "--json", str(figures), "--report", str(page),
        ],
        catch_exceptions=False,
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output
    rows = {row["name"]: row for row in json.loads(figures.read_text())["rows"]}
    assert list(rows) == [BARE, COMPACT, LOOP]
    assert [row["lost"] for row in rows.values()] == [0, 0, 0]
    assert min(row["fps"] for row in rows.values()) > 0
    assert rows[COMPACT]["people"] == rows[LOOP]["people"] == [16, 16]
    assert rows[COMPACT]["p50_ms"] > 0
    assert f"| 2 | {LOOP} | " in page.read_text()


def test_a_peer_that_cannot_be_run_is_left_out_by_name(
    two_people: Path, clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    options = ["--model", str(two_people), "--clip", str(clip), "--frames", "8", "--count", "1", "--rounds", "1"]
    absent = [word for name in PEERS for word in ("--only", name)]
    ran = CliRunner().invoke(
        bench_peers.main, [*options, "--size", "64", "64", "--no-install", *absent], catch_exceptions=False
    )
    assert ran.exit_code == 0, ran.output
    assert all(f"- {name} did not take part: " in ran.output for name in PEERS)
    assert "| 1 | bare loop | 1.000 |" in ran.output


def test_without_a_model_nothing_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAMGRAPH_TEST_DATA", str(tmp_path))
    ran = CliRunner().invoke(bench_peers.main, [], catch_exceptions=False)
    assert ran.exit_code == 0
    assert "no YOLO-pose model" in ran.output


def test_clips_have_the_wanted_number_of_frames(clip: Path, tmp_path: Path) -> None:
    made = tmp_path / "made.mp4"
    write_clip(clip, made, 13, (320, 240))
    with av.open(str(made)) as container:
        pictures = list(container.decode(video=0))
    assert [(one.width, one.height) for one in pictures] == [(320, 240)] * 13


def test_the_counts_of_a_graph_are_read_by_camera() -> None:
    answer = answer_of("c1 3 1000 2000000\nc0 1 5000000000 500000\nc1 4 3000 0\n", 3, 2.0)
    assert (answer.begun_ns, answer.ended_ns) == (3 * 10**9, 5 * 10**9)
    assert (answer.frames, answer.people) == ([1, 2, 0], [1, 7, 0])
    assert answer.latencies_ms == [2.0, 0.5, 0.0]


@pytest.mark.skipif(not has_matplotlib(), reason="matplotlib is not installed")
def test_a_plot_is_a_picture(tmp_path: Path) -> None:
    rows = [
        Row(name, cameras, 0.9, 0.8, 1.0, 20.0, 0.9, 50.0, 100.0, None, None, (3, 3), 0)
        for name in (BARE, COMPACT, LOOP)
        for cameras in (1, 4)
    ]
    plot(rows, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
