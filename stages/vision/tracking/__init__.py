"""Following things from frame to frame: boxes and scores in, identities out. No clock but the stream's own."""

from stages.vision.tracking.tracker import Followed, Tracker, TrackerOptions

__all__ = ["Followed", "Tracker", "TrackerOptions"]
