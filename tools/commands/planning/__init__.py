"""`camgraph plan`: a short trial of the user's own graph, and the number of cameras that follows from it.

Start with `plan.py`, then `arithmetic.py`. Sinks are replaced in a trial, so it never sends or writes events.
"""
