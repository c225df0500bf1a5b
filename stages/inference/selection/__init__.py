"""Which engine runs a model here, and how: trials of providers, tuning of threads and batches, and their kept results.

Start with `opening.py` (the first provider that works) and `automatic.py` (the best one).
"""
