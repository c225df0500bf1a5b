"""`camgraph model compare`: whether two models find the same people. Start with `command.py`, then `comparison.py`."""
