"""Puts faults of cameras on a whole graph: what it reports, when the camera is back, what others notice, what stays."""
