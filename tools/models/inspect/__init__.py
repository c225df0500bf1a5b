"""`camgraph model inspect`: a model's facts, and which provider runs how much of it. Start with `inspection.py`."""
