"""Follows people from frame to frame: boxes and scores in, identities out.

Start with `tracker.py`, which takes a frame through the steps of the other modules. No clock but the stream's own,
and no picture: the appearance of a person arrives as a vector.
"""

from camgraph.stages.vision.tracking.tracker import Followed, Tracker, TrackerOptions

__all__ = ["Followed", "Tracker", "TrackerOptions"]
