"""Stages for tests, as a package of their own, and the helpers that tests share. It is not in the wheel.

Start with `source.py` (a source of made-up messages) and `waiting.py` (waiting for a condition).
"""
