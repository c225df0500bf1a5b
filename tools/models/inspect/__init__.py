"""`camgraph model inspect`: what a model is, and which provider runs how much of it. Start with `inspection.py`."""
