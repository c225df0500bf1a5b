"""`camgraph model compare`: whether two models find the same people.

Start with `command.py`, then `comparison.py`. Without truth, it only says how far the two agree, not which one is
right.
"""
