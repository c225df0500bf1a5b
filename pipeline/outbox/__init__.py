"""Durable events: SQLite between the stages that make events and the sinks that deliver them.

Start with `outbox.py`. An event is safe when `accept` returns. Sinks are stages and live in `stages`; nothing here
knows the body of an event.
"""

from camgraph.pipeline.outbox.outbox import Outbox

__all__ = ["Outbox"]
