"""Rules: a condition becomes one Python function, and a judge applies it to the people of each frame. Pure.

Start with `expression.py` (text to tree) and `terms.py` (the meaning of a condition). `condition.py` goes the whole way
from a text to functions: `meaning.py` checks, `needs.py` analyses, `emission.py` writes. Two tables have a row for each
function of the language (`functions.py`) and for each kind of cell that looks back in time (`cells.py`). `judge.py`
judges people. No clock, no file, no camera.
"""
