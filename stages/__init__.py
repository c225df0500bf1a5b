"""One file per stage: a thin shell of I/O over the pure functions in `stages.vision`."""

import pipeline  # noqa: F401 - turns telemetry off before a module of this package loads a library
