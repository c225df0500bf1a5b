"""The parts of a process that its messages pass, and the change of all these parts to a plan with other cameras."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from camgraph.pipeline.boot import Boot
from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.execution.source_thread import SourceThread
from camgraph.pipeline.execution.stage_chain import StageChain
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.plan import slots_of
from camgraph.pipeline.shm.slots import SlotRing
from camgraph.pipeline.transport.receiver import Receiver
from camgraph.pipeline.transport.sender import Sender
from camgraph.pipeline.worker.input_loop import InputLoop
from camgraph.pipeline.worker.outbox_relay import OutboxRelay
from camgraph.pipeline.worker.sources import Sources


@dataclass(frozen=True, slots=True, eq=False)
class MessagePath:
    """From the sources, or from other processes by way of `receiver` and `input_loop`, through the stages to `sender`.

    `ring` holds the large arrays of the messages that leave the process. `relay`: in the process that has the outbox.
    """

    sources: Sources
    receiver: Receiver | None
    input_loop: InputLoop | None
    chain: StageChain
    sender: Sender
    ring: SlotRing
    relay: OutboxRelay | None

    def revise(self, boot: Boot, new_source: Callable[[Boot, str], SourceThread]) -> str:
        """Change all parts to the plan of `boot`; return the reason if there is no memory or no time for this plan.

        Cameras that stay are not touched. Cameras that are gone are forgotten: they have ended before, and all their
        messages are done everywhere. `new_source(boot, camera)` makes the source of a camera that is new, which waits
        for the order to start.
        """
        before, plan = self.chain.plan, boot.plan
        coming = [camera for camera in plan.cameras if camera not in before.cameras]
        outboxes = [runner.stage for runner in self.chain.runners.values() if isinstance(runner.stage, Outbox)]
        if coming and any(outbox.all_ended for outbox in outboxes):
            return "the run is at its end"
        try:
            self.ring.resize(slots_of(plan))
        except EnvironmentProblem as problem:
            return str(problem)
        self.sender.revise(plan.routes)
        if self.receiver:
            self.receiver.revise(plan)
        self.chain.revise(plan)
        for outbox in outboxes:
            outbox.expects_more = plan.expects_more
        self.sources.keep_only(plan.cameras)
        for camera in coming if plan.sources else ():
            self.sources.add(new_source(boot, camera))
        return ""
