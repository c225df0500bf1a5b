"""Chooses the engine for a model on this machine by trials of providers, whose results are kept.

Start with `opening.py` (the first provider that works) and `automatic.py` (the best one). Nothing here runs a frame
of a camera: trials have pictures of their own.
"""
