"""Output on a terminal: the live table, the status, progress, and the one way to write to it (`screen.py`).

Start with `running.py`, which runs a graph under a live table. Nothing here reads arguments.
"""
