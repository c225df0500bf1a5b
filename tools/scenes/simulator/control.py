"""The messages between a simulator and its server process: lines of JSON over a pair of sockets.

farm                                server
  |------ Plan ----------------------->|   reads and encodes the clips, opens the ports
  |<----- Reply (ports) ---------------|
  |------ Order ---------------------->|   one at a time
  |<----- Reply ----------------------|   when it is done
  |------ end of file --------------->|   the server ends; so it does when the simulator's process dies
"""

from __future__ import annotations

from typing import Literal

from camgraph.tools.scenes.simulator.accounts import CameraCounts, FrameSent
from camgraph.tools.scenes.simulator.faults import Fault, FaultName, ScheduledFault
from camgraph.tools.scenes.simulator.settings import CameraSettings, Frozen


class Plan(Frozen):
    """All that a server needs to begin."""

    cameras: tuple[CameraSettings, ...]
    schedule: tuple[ScheduledFault, ...] = ()
    say_faults: bool = False


class Order(Frozen):
    """Something to do, or to tell, of one camera."""

    do: Literal["fault", "heal", "count", "sent"]
    camera: str
    fault: Fault | None = None
    names: tuple[FaultName, ...] = ()
    newest: int = 0


class Reply(Frozen):
    """The result of a plan or an order. ``error`` is a message; ``exit_status`` shows whose mistake it was."""

    error: str = ""
    exit_status: int = 0
    ports: tuple[int, ...] = ()
    counts: CameraCounts | None = None
    sent: tuple[FrameSent, ...] = ()
