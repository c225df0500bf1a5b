"""The benchmark of many cameras: its arithmetic on figures made by hand, and a short run."""

from __future__ import annotations

from collections import Counter
from typing import Any

from click.testing import CliRunner

from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.tools.lab.benchmarks import cameras as bench_cameras
from camgraph.tools.lab.benchmarks.cameras import Subject, range_of, report, row_of
from camgraph.tools.lab.camera_run import CameraSet, Inference, Snapshot, Window
from camgraph.tools.measuring.processor_time import CpuTime

QUICK = ["--picture", "320", "240", "--seconds", "2"]


def look(at_s: int, frames: int, dropped: int) -> Snapshot:
    def camera(n: int) -> dict[str, Any]:
        return {"frames": frames, "drops_by_reason": {"queue_full": n * dropped}, "skipped_by_reason": {}}

    status = {
        "cameras": {"a": camera(1), "b": camera(2)},
        "processes": {"capture.a": {"pid": 7, "cpu_s": frames / 100}, "infer.0": {"pid": 8, "cpu_s": frames / 20}},
        "memory_mb": 80.0,
    }
    cpu = CpuTime(at_s, frames / 10, 0.065 * frames)
    return Snapshot(at_s * 10**9, RunStatus.from_json(status), 0.0, frames / 200, cpu, 30.0)


def test_a_row_says_who_got_what_and_what_it_cost() -> None:
    ran = [Inference(n * 10**8, n * 10**8 + 5, "aab"[n % 3], 0, n, n * 10**8 - 50 * 10**6) for n in range(50)]
    row = row_of("separate", Window(look(1, 10, 1), look(4, 40, 4), ran))
    assert (row.frames_fps, row.inferred_fps) == (20, 10)
    assert row.shares == {"a": 20 / 15, "b": 10 / 15}
    assert row.drops == {"a": {"queue_full": 3}, "b": {"queue_full": 6}}
    assert set(row.ages_ms) == {50.0}
    text = report(Subject(CameraSet(2, 10, (640, 360), None), "model.onnx", (320, 192), 3.0), [row], [1.0, 2.0])
    assert "| separate | 20.0 | 10.0 | 0.67, 1.33 | 50, 50 | queue_full 3 to 6 | 0 |" in text
    assert "| separate | 2 | 80 | 30 | 0.60 | 60.0 | capture 0.10, infer 0.50 | 0.05 | 0.35 |" in text
    assert "| b | 30 | 10 | 0.67 | queue_full 6 |" in text
    assert "Decoding alone took 1.0 to 2.0 ms a picture" in text


def test_who_lost_nothing_counts_among_the_fewest() -> None:
    assert range_of({"a": Counter(stale=2), "b": Counter(), "c": Counter(rate=1)}) == "rate 0 to 1, stale 0 to 2"
    assert range_of({"a": Counter()}) == "0"


def test_what_decoding_costs_alone_is_measured() -> None:
    assert 0 < bench_cameras.bare_decode_ms(CameraSet(1, 5, (320, 240), None, seconds=2)) < 100


def test_cameras_of_one_process_go_through_the_null_model() -> None:
    ran = CliRunner().invoke(
        bench_cameras.main,
        [*QUICK, "--way", "null model, 16 a process", "--cameras", "2", "--size", "64", "64"],
        catch_exceptions=False,
    )
    assert ran.exit_code == 0
    first, cost, a, b = (line.split("|") for line in ran.output.splitlines() if line[:4] in ("| nu", "| c0", "| c1"))
    assert float(first[3]) > 0
    assert int(cost[2]) == 4
    assert min(int(a[3]), int(b[3])) > 0
