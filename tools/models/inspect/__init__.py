"""`camgraph model inspect`: a model's facts, and the share of it that each provider runs.

Start with `inspection.py`. The command changes no file.
"""
