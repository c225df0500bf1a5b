"""Chooses the engine for a model on this machine: trials of providers, tuning of threads and batches, their kept
results.

Start with `opening.py` (the first provider that works) and `automatic.py` (the best one). Nothing here runs a frame
of a camera: trials have pictures of their own.
"""
