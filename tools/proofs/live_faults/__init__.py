"""Faults of cameras against a whole graph: what is told, when it is back, what others notice, and what stays."""
