"""The step that puts camgraph beside others, all on the GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tools.benchmarks.gpu_smoke.task import Bench, Failed


def peers(bench: Bench) -> str:
    """camgraph beside a bare loop and others that are installed here, all on the GPU."""
    from tools.models.declaration import DeclaredModel  # noqa: PLC0415

    contract = DeclaredModel(Path(bench.task.model)).contract()
    file = bench.folder / "peers.json"
    options = ["--size", str(contract.width or 640), str(contract.height or 640), "--count", "4", "--rounds", "1"]
    done = subprocess.run(  # noqa: S603 - our own program
        [
            *(sys.executable, "-P", "-m", "tools.benchmarks.peers", "--gpu", "--no-install", "--json", str(file)),
            *("--model", bench.task.model, "--clip", bench.task.clip, "--frames", str(8 * bench.task.frames), *options),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode or not file.exists():
        raise Failed(f"it ended with status {done.returncode}: {done.stderr[-500:]}")
    bench.figures["peers"] = json.loads(file.read_text())
    lines = [line for line in done.stdout.splitlines() if line.startswith("round ") or " is left out: " in line]
    message = "; ".join(line.removeprefix("round 1, 4 cameras, ") for line in lines)
    if not any(line.startswith("round 1, 4 cameras, camgraph") for line in lines):
        raise Failed(message or "nobody took part")
    return message
