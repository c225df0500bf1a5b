"""The command line, and the tools around it."""

import pipeline  # noqa: F401 - turns telemetry off before a module of this package loads a library
