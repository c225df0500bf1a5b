"""How much memory a model takes: the peak of a process of its own, which opens it and runs it a few times.

As a program it reads from its input the model and settings of `infer`, and prints the peak in bytes, or null if the
system does not report it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from camgraph.pipeline.errors import BadItem
from camgraph.pipeline.single_stage import stamp
from camgraph.stages.messages import Frame
from camgraph.tools.models.chain import Chain
from camgraph.tools.models.high_water import high_water_bytes
from camgraph.tools.models.own_process import answer, ask

_RUNS = 3
_THIS = "camgraph.tools.models.compare.memory"
LIMIT_S = 600.0
"""For opening it and running it."""


def peak_bytes(model: Path, **settings: Any) -> int | None:
    """Of a process that opens the model and runs it, Python and its libraries included; a GPU's memory is not.

    None if the system does not tell (only Linux does). Raises UserError if the model cannot be opened,
    EnvironmentProblem if the process failed or did not end.
    """
    reply = ask(_THIS, model, settings, limit_s=LIMIT_S, advice="does this model ever answer?")
    return None if reply is None else int(reply)


def _run(settings: dict[str, Any]) -> int | None:
    model = Path(settings.pop("model"))
    with Chain(model, **settings) as chain:
        prepared = chain.prepared(Frame(stamp(), np.zeros((480, 640, 3), np.uint8), 640, 480))
        for _ in range(_RUNS):
            with suppress(BadItem):  # its answer took memory all the same
                chain.found(chain.inferred(prepared))
    return high_water_bytes()


if __name__ == "__main__":
    answer(_run)
