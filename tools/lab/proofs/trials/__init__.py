"""Trials by fire: a light live graph on simulated cameras, watched from outside while it is harmed.

Start with `subject.py` (the graph) and `harm.py` (kills and freezes). Nothing here runs in a process of that graph.
"""
