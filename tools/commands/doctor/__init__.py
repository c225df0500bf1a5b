"""`camgraph doctor`: checks each part of the machine, and names a remedy if one is wrong.

Start with `command.py` (the checks in their order) and `notice.py` (a line of the report). A check changes nothing.
"""
