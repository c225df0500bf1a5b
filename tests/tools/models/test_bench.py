"""`camgraph model bench`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.testing import hit
from camgraph.stages.people.inference.selection.opening import Asked
from camgraph.tools.cli import main
from camgraph.tools.models.bench import comparison as bench_comparison
from camgraph.tools.models.bench import report as bench_report
from camgraph.tools.models.bench.crew import Crew, CrewFailed
from camgraph.tools.models.bench.grid import Configuration, Split, cost_per_1000, declared_splits, grid, usual_splits
from camgraph.tools.models.bench.machine import disturbance
from camgraph.tools.models.bench.pictures import pictures_of
from camgraph.tools.models.bench.record import LeftOut, Machine, Measured, Record, read, save
from camgraph.tools.models.bench.worker import Job, batches
from camgraph.tools.models.declaration import Declaration, DeclaredModel

MACHINE = Machine(cores=4, processor="P", system="S", python="3", onnxruntime="1", offered=("CPU",), other_cores=0.1)


def measured(*rounds: float, provider: Any = "cpu", peak_mb: float = 100.0) -> Measured:
    return Measured(
        provider=provider, runs_on=provider, batch=1, workers=1, threads=2, intra_op=1, frames_per_s=rounds,
        run_p50_ms=1.0, run_p99_ms=2.0, open_s=0.5, peak_mb=peak_mb,
    )  # fmt: skip


def record(*configurations: Measured, **values: Any) -> Record:
    usual: dict[str, Any] = {
        "at": "now", "model": "m.onnx", "sha256": "0", "size": (64, 48), "pictures": "random", "precision": "f32",
        "interrupted": False, "machine": MACHINE,
    }  # fmt: skip
    return Record(**usual | values, measured=configurations)


def bench(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["model", "bench", *map(str, arguments)])


def test_each_provider_meets_each_batch_and_split_once() -> None:
    found = list(grid(["cpu", "openvino"], [1, 8, 1], [Split(), Split(threads=2)]))
    assert len(found) == len(set(found)) == 8
    assert str(found[-1]) == "openvino, batch 8, 1 x 2 x 1"


@pytest.mark.parametrize("cores", [1, 2, 3, 16])
def test_the_usual_splits_take_all_cores_in_each_way_and_no_more(cores: int) -> None:
    splits = usual_splits(cores)
    used = [one.workers * one.threads * one.intra_op for one in splits]
    assert max(used) == cores
    assert len(set(splits)) == len(splits)
    assert splits[0] == Split(1, 1, 1)


def test_declared_numbers_are_combined() -> None:
    assert declared_splits([1, 2], [], [4]) == [Split(1, 1, 4), Split(2, 1, 4)]


def test_a_dearer_hour_and_a_slower_model_cost_more() -> None:
    assert cost_per_1000(10.0, 3.6) == pytest.approx(0.1)
    assert cost_per_1000(20.0, 3.6) == pytest.approx(0.05)


def test_inputs_are_made_of_all_pictures_in_turn() -> None:
    rows = np.arange(3).reshape(3, 1)
    assert [one.ravel().tolist() for one in batches(rows, 2)] == [[0, 1], [2, 0], [1, 2], [0, 1]]


def test_a_size_that_the_model_does_not_take_is_refused(tiny_model: Path) -> None:
    with pytest.raises(UserError, match="takes pictures of 32x32"):
        pictures_of(DeclaredModel(tiny_model, Declaration(size=(64, 64))), [])


def test_ratios_are_taken_within_a_round() -> None:
    # The machine halves its speed in every other round: the medians alone would say 1.5.
    one, best = measured(5, 10, 5, 10), measured(10, 20, 10, 20)
    assert bench_report.ratio(one, best) == 0.5


def test_a_saved_run_is_read_again(tmp_path: Path) -> None:
    saved = record(measured(1.0, 2.0), left_out=(LeftOut(what="cuda", why="none"),))
    save(saved, tmp_path / "run.json")
    assert read(tmp_path / "run.json") == saved


@pytest.mark.parametrize("text", ["{}", '{"measured": [{}]}', "[1]", "no json", '{"kind": "other"}'])
def test_what_is_no_saved_run_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    found = bench(tmp_path / "run.json")
    assert found.exit_code == 2
    assert "expected what `camgraph model bench --json` writes" in found.output


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ((10, 11, 12, 10, 11), (20, 21, 22, 20, 21), "faster"),
        ((20, 21, 22, 20, 21), (10, 11, 12, 10, 11), "slower"),
        ((10, 11, 12, 10, 11), (11, 12, 13, 11, 10), "within the noise"),
        ((10, 11), (20, 21), "too few rounds"),
    ],
)
def test_only_what_is_beyond_the_noise_is_faster_or_slower(before: Any, after: Any, verdict: str) -> None:
    [found] = bench_comparison.compare(record(measured(*before)), record(measured(*after)))
    assert found.verdict == verdict


def test_equal_speed_is_seldom_called_a_difference() -> None:
    random = np.random.default_rng(3)
    wrong = 0
    for _ in range(300):
        first, other = random.normal(100, 10, (2, 7)).tolist()
        [found] = bench_comparison.compare(record(measured(*first)), record(measured(*other)))
        wrong += found.verdict != "within the noise"
    assert wrong <= 9


def test_a_comparison_names_what_else_differs() -> None:
    busy = MACHINE.model_copy(update={"other_cores": 2.0, "onnxruntime": "2"})
    before, after = record(measured(1.0)), record(measured(1.0, provider="openvino"), machine=busy, size=(32, 32))
    text = "\n".join(bench_comparison.lines(before, after))
    for part in ("another size", "ONNX Runtime is another one", "only one of them has", "after: warning: other"):
        assert part in text
    assert "no configuration in common" in text


def test_a_busy_machine_is_told() -> None:
    assert not disturbance(MACHINE)
    assert "2.00 of 4 cores" in disturbance(MACHINE.model_copy(update={"other_cores": 2.0}))
    assert not disturbance(MACHINE.model_copy(update={"other_cores": None}))


def test_a_dead_worker_is_named(tiny_model: Path, tmp_path: Path) -> None:
    crew = Crew(a_job(tiny_model, tmp_path, "cpu"), open_limit_s=120)
    try:
        assert crew.shot(0.01).frames_per_s > 0
        for process in crew._processes:
            assert process.pid
            hit(process.pid, signal.SIGKILL)
        with pytest.raises(CrewFailed, match="a worker died"):
            crew.shot(0.01)
    finally:
        crew.close()


def test_a_provider_that_is_not_here_says_so_and_no_more(tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(CrewFailed) as caught:
        Crew(a_job(tiny_model, tmp_path, "coreml"), open_limit_s=120)
    assert caught.value.provider
    assert str(caught.value).startswith("this ONNX Runtime has only")


def a_job(model: Path, folder: Path, provider: Any) -> Job:
    np.save(folder / "pictures.npy", np.zeros((2, 3, 32, 32), np.float32))
    one = Configuration(provider, 2, Split(workers=2, threads=2))
    return Job(model, one, Asked((provider,)), "images", folder / "pictures.npy")


def test_the_whole_command_measures_saves_and_compares(tiny_model: Path, tmp_path: Path) -> None:
    saved = tmp_path / "run.json"
    asked = ("--providers", "coreml,cpu", "--batch", 1, "--batch", 3, "--threads", 2)
    found = bench(tiny_model, *asked, "--rounds", 3, "--seconds", 1.2, "--json", saved, "--price-per-hour", 2)
    assert found.exit_code == 0, found.output
    run = read(saved)
    assert [(one.provider, one.batch, one.workers, one.threads) for one in run.measured] == [
        ("cpu", 1, 1, 2),
        ("cpu", 3, 1, 2),
    ]
    assert [len(one.frames_per_s) for one in run.measured] == [3, 3]
    assert all(one.peak_mb is not None and one.peak_mb > 40 for one in run.measured)
    assert [one.what for one in run.left_out] == ["coreml"]
    assert "cost of 1,000 frames" in found.output
    compared = bench(saved, "--against", saved)
    assert compared.exit_code == 0
    assert compared.output.count("| 1.00 | 1.00 |") == 2


def test_an_interrupted_run_shows_what_it_has(tiny_model: Path, tmp_path: Path) -> None:
    saved = tmp_path / "run.json"
    command = [
        sys.executable,
        "-m",
        "camgraph.tools.cli",
        "model",
        "bench",
        tiny_model,
        "--json",
        saved,
        "--providers",
        "cpu",
    ]
    more = ["--batch", "1", "--threads", "1", "--seconds", "600", "--rounds", "600"]
    with subprocess.Popen(
        [*map(str, command), *more], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ.copy()
    ) as process:
        try:
            assert process.stderr is not None
            while not (line := process.stderr.readline()).startswith("round 1 "):
                assert line, "it ended too early"
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "interrupted" in output
    assert "| cpu | 1 | 1 x 1 x 1 |" in output
    assert read(saved).interrupted


def test_it_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="no matplotlib (the extra `plots`)")
    save(record(measured(1.0, 2.0), measured(3.0, 4.0, provider="cuda")), tmp_path / "run.json")
    found = bench(tmp_path / "run.json", "--plot", tmp_path / "run.png")
    assert found.exit_code == 0, found.output
    assert (tmp_path / "run.png").read_bytes()[:4] == b"\x89PNG"


def test_without_matplotlib_nothing_is_measured(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camgraph.tools.measuring.plots.find_spec", lambda name: None)
    found = bench(tiny_model, "--plot", "run.png")
    assert found.exit_code == 3
    assert "pip install 'camgraph[plots]'" in found.output


rounds = st.lists(st.floats(1, 100), min_size=1, max_size=12)


@settings(max_examples=50)
@given(rounds, rounds)
def test_chance_of_a_difference_is_that_of_scipy(one: list[float], other: list[float]) -> None:
    expected = mannwhitneyu(one, other, method="exact").pvalue
    assert bench_comparison.chance_of(one, other) == pytest.approx(expected)
