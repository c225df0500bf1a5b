"""Hands the outputs for items to the sender, and reports when everything made of an item is done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from camgraph.pipeline.errors import BadItem, CamgraphError, EnvironmentProblem
from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.execution.retry import Closing
from camgraph.pipeline.execution.stage_chain import Made
from camgraph.pipeline.items import Item
from camgraph.pipeline.transport.in_flight import Ticket
from camgraph.pipeline.transport.sender import Sender


class Emitter:
    """One for each process. A message that cannot be sent is counted and logged, and costs nothing else."""

    def __init__(self, sender: Sender, parts: ProcessParts) -> None:
        self._sender = sender
        self._retry = parts.retry
        self._counters = parts.counters
        self._log = parts.log
        self._logged: set[tuple[str, str]] = set()

    def submit(self, items: Sequence[Item], made: Iterable[Made], on_done: Callable[[Item], None]) -> None:
        """Send the outputs for these items; `on_done(item)` is called when everything made of an item is done."""
        if len(items) == 1:
            self._submit(items[0], made, on_done)
            return
        by_item: dict[int, list[Made]] = defaultdict(list)
        for one in made:
            by_item[id(one.item)].append(one)
        for item in items:
            self._submit(item, by_item.get(id(item), ()), on_done)

    def _submit(self, item: Item, made: Iterable[Made], on_done: Callable[[Item], None]) -> None:
        ticket = Ticket(on_done, item)
        for one in made:
            self._send(one, item.camera, ticket)
        ticket.closed()

    def _send(self, one: Made, camera: str, ticket: Ticket) -> None:
        try:
            try:
                self._sender.submit(one.edges, camera, one.key, one.message, ticket)
            except EnvironmentProblem:  # shared memory is short: nothing has been sent yet, and it is tried again
                stage = one.edges[0].sender
                self._retry.until_taken(stage, self._sender.submit, one.edges, camera, one.key, one.message, ticket)
        except BadItem as bad:
            self._counters.add(f"dropped.{bad.reason}", camera)
            if (camera, bad.reason) not in self._logged:  # from there on the counter shows it
                self._logged.add((camera, bad.reason))
                self._log.error("message_dropped", camera=camera, error=str(bad))
        except (CamgraphError, Closing):
            raise
        except Exception:  # noqa: BLE001 - an output that no message can hold, or a bug in its class
            stage = one.edges[0].sender
            self._counters.add("dropped.error", camera)
            self._counters.add(f"failed.{stage}", camera)
            self._log.exception("message_cannot_be_sent", stage=stage, camera=camera, type=one.message.TYPE)
