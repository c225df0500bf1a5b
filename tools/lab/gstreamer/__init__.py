"""An RTSP server that is not ours, so that camgraph is not tested against its own reading of the protocol alone.

Start with `server.py`. `program.py` runs in the Python of the system, and imports nothing of camgraph.
"""

from camgraph.tools.lab.gstreamer.server import PACKAGES, GStreamerServer, missing_packages

__all__ = ["PACKAGES", "GStreamerServer", "missing_packages"]
