"""One child process from inside: the loop that takes messages, runs stages, and sends their outputs.

Start with `child.py` (first line to last) and `worker.py` (the loop). The bytes of messages belong to `transport`, the
calls of a stage to `execution`.
"""

import sys

# structlog loads rich, for tracebacks in colour, if it is there: a sixth of the processor time that a process takes to
# start. The lines of a child go to the supervisor as plain values.
if "rich" not in sys.modules:
    sys.modules["rich"] = None  # type: ignore[assignment]
    import structlog  # noqa: F401

    del sys.modules["rich"]
