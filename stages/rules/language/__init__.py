"""Rules: a condition becomes one Python function, and a judge applies it to the people of each frame. Pure.

Start with `expression.py` (text to tree), then `condition.py` and `judge.py`. No clock, no file, no camera.
"""
