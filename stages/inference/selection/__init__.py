"""Which engine runs a model here, and how: trials of providers, tuning of threads and batches, what was kept of both.

Start with `opening.py` (the first provider that works) and `automatic.py` (the best one).
"""
