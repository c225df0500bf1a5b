"""An RTSP server that is not ours, so that camgraph is not tested against its own reading of the protocol alone."""

from tools.simulator.gstreamer.server import PACKAGES, GStreamerServer, what_is_missing

__all__ = ["PACKAGES", "GStreamerServer", "what_is_missing"]
