"""The GPUs in the metrics, told by a program that stands for nvidia-smi: no GPU is here."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from camgraph_test_stages.waiting import until

from camgraph.tools.measuring.nvidia_smi import LOADS
from camgraph.tools.service.run import health_calls
from camgraph.tools.service.run.health_calls import Gpus
from camgraph.tools.service.run.metrics import exposition

pytestmark = pytest.mark.processes

WITHIN_S = 60.0


def program(folder: Path, *lines: str) -> str:
    """A Python program that notes each of its starts in `starts`, and then does this."""
    head = [f"#!{sys.executable} -S", "import os, sys, time", f"open({str(folder / 'starts')!r}, 'a').write('x')"]
    path = folder / "nvidia-smi"
    path.write_text("\n".join([*head, *lines]) + "\n")
    path.chmod(0o755)
    return str(path)


def starts(folder: Path) -> int:
    file = folder / "starts"
    return len(file.read_text()) if file.exists() else 0


def samples(gpus: Gpus) -> Sequence[str]:
    return [line for line in exposition(None, gpus.now()).decode().splitlines() if line.startswith("camgraph_gpu")]


def test_its_answer_is_in_the_metrics_and_it_is_asked_rarely(tmp_path: Path) -> None:
    asked = f"assert sys.argv[1:] == {[*LOADS]!r}"
    says = "print('0, 1024, 81559, 37, NVIDIA H100\\n1, 0, 4096, [N/A], NVIDIA T400')"
    gpus = Gpus(program(tmp_path, asked, says), within_s=WITHIN_S)
    found = samples(gpus)
    assert (
        found
        == samples(gpus)
        == [
            'camgraph_gpu_memory_used_bytes{gpu="0",name="NVIDIA H100"} 1.073741824e+09',
            'camgraph_gpu_memory_used_bytes{gpu="1",name="NVIDIA T400"} 0.0',
            'camgraph_gpu_memory_bytes{gpu="0",name="NVIDIA H100"} 8.5520809984e+10',
            'camgraph_gpu_memory_bytes{gpu="1",name="NVIDIA T400"} 4.294967296e+09',
            'camgraph_gpu_busy{gpu="0",name="NVIDIA H100"} 0.37',
        ]
    )
    assert starts(tmp_path) == 1


def test_without_it_and_where_it_fails_nothing_is_told(tmp_path: Path) -> None:
    assert samples(Gpus(str(tmp_path / "absent"))) == []
    gpus = Gpus(program(tmp_path, "print('0, 1, 2, 3, NVIDIA T400')", "sys.exit(9)"), within_s=WITHIN_S)
    assert samples(gpus) == []
    assert starts(tmp_path) == 1


def test_no_scrape_waits_for_a_hung_program_or_starts_another(tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    hangs = f"while not os.path.exists({str(go_on)!r}): time.sleep(0.02)"
    gpus = Gpus(program(tmp_path, hangs, "print('0, 1, 2, 3, NVIDIA T400')"), within_s=0.01, given_up_s=WITHIN_S)
    assert samples(gpus) == []
    until(lambda: starts(tmp_path) == 1, WITHIN_S)
    assert samples(gpus) == []
    assert starts(tmp_path) == 1
    go_on.touch()
    until(lambda: len(samples(gpus)) == 3, WITHIN_S)


def test_a_slow_programs_last_answer_is_shown_until_it_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_calls, "_FRESH_S", 0.0)
    hangs = f"while not os.path.exists({str(tmp_path / 'go-on')!r}): time.sleep(0.02)"
    gpus = Gpus(program(tmp_path, hangs, "print('0, 1, 2, 3, NVIDIA T400')"), within_s=0.01, given_up_s=WITHIN_S)
    (tmp_path / "go-on").touch()
    until(lambda: len(samples(gpus)) == 3, WITHIN_S)
    (tmp_path / "go-on").unlink()
    asked = starts(tmp_path)
    until(lambda: samples(gpus) and starts(tmp_path) > asked, WITHIN_S)
    assert len(samples(gpus)) == 3, "it hangs, and nobody has answered since"
    monkeypatch.setattr(gpus, "_known_until_s", 0.0)
    assert samples(gpus) == []
    (tmp_path / "go-on").touch()
    until(lambda: len(samples(gpus)) == 3, WITHIN_S)


def test_without_a_thread_the_next_one_asks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = Gpus(program(tmp_path, "print('0, 1, 2, 3, NVIDIA T400')"), within_s=WITHIN_S)

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        assert gpus.now() == ()
    assert len(gpus.now()) == 1


def test_one_that_never_ends_is_given_up(tmp_path: Path) -> None:
    gpus = Gpus(program(tmp_path, "time.sleep(1000)"), within_s=WITHIN_S, given_up_s=0.1)
    assert samples(gpus) == []
    until(lambda: not [one for one in threading.enumerate() if one.name == "nvidia-smi"], WITHIN_S)
