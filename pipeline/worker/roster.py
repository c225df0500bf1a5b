"""Changes a process to a plan with other cameras. Cameras that stay are not touched.

Cameras that are new get their ways and their places. Those that are gone have said their last word before, and all of
it is done everywhere: they are forgotten.
"""

from __future__ import annotations

from collections.abc import Callable

from pipeline.boot import Boot
from pipeline.errors import EnvironmentProblem
from pipeline.execution.source_thread import SourceThread
from pipeline.execution.stage_chain import StageChain
from pipeline.outbox.outbox import Outbox
from pipeline.plan import slots_of
from pipeline.shm.slots import SlotRing
from pipeline.transport.receiver import Receiver
from pipeline.transport.sender import Sender
from pipeline.worker.sources import Sources


def revise(
    boot: Boot,
    chain: StageChain,
    receiver: Receiver | None,
    sender: Sender,
    *,
    ring: SlotRing,
    sources: Sources,
    new_source: Callable[[Boot, str], SourceThread],
) -> str:
    """Give a process another plan; returns why it cannot have it, if it has no memory or no time for it.

    `new_source(boot, camera)` makes the source of a camera. A source that is new waits for the order to start.
    """
    before, plan = chain.plan, boot.plan
    coming = [camera for camera in plan.cameras if camera not in before.cameras]
    outboxes = [runner.stage for runner in chain.runners.values() if isinstance(runner.stage, Outbox)]
    if coming and any(outbox.all_ended for outbox in outboxes):
        return "the run is at its end"
    try:
        ring.resize(slots_of(plan))
    except EnvironmentProblem as problem:
        return str(problem)
    sender.revise(plan.routes)
    if receiver:
        receiver.revise(plan)
    chain.revise(plan)
    for outbox in outboxes:
        outbox.expects_more = plan.expects_more
    sources.keep_only(plan.cameras)
    for camera in coming if plan.sources else ():
        sources.add(new_source(boot, camera))
    return ""
