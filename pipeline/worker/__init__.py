"""One child process from inside: the loop that takes messages, runs stages, and sends their outputs.

Start with `child.py` (first line to last) and `worker.py` (the loop). The bytes of messages belong to `transport`,
the calls of a stage to `execution`.

Nothing here decides about another process.
"""

import gc
import sys

# What is imported stays. To look through it for garbage again and again takes a tenth of the processor time of a start:
# `child.py` lets that begin once it has made its stages. `-m`: Python is about to run a module of this package.
if sys.argv[:1] == ["-m"]:
    gc.disable()

# structlog loads rich, for tracebacks in colour, if it is there: a sixth of the processor time that a process takes to
# start. The lines of a child go to the supervisor as plain values.
if "rich" not in sys.modules:
    sys.modules["rich"] = None  # type: ignore[assignment]
    import structlog  # noqa: F401

    del sys.modules["rich"]
