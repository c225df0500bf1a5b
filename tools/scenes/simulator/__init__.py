"""RTSP cameras that are simulated: looping streams of clips on loopback, with faults at will (`camgraph farm`).

caller      rtsp_simulator, settings, faults, control, accounts; command (`camgraph farm`)
server      server, connection, authentication, rtsp
one camera  camera, clip, encoding, pattern, timeline
one client  viewer, nal, rtp, carriers, disturbance, outflow
beside      event_receiver: reads events as another program would

There is no audio. Start with `rtsp_simulator.py`, which starts the server's process and talks to it; `server.py` is
that process.
"""

from camgraph.tools.scenes.simulator.accounts import CameraCounts, FrameSent
from camgraph.tools.scenes.simulator.faults import Fault, ScheduledFault, parse_fault
from camgraph.tools.scenes.simulator.rtsp_simulator import CameraHandle, RtspSimulator
from camgraph.tools.scenes.simulator.settings import CameraSettings, ClipSettings

__all__ = [
    "CameraCounts",
    "CameraHandle",
    "CameraSettings",
    "ClipSettings",
    "Fault",
    "FrameSent",
    "RtspSimulator",
    "ScheduledFault",
    "parse_fault",
]
