"""Files of sinks, written so that a kill or a full disk costs no more than it must.

Start with `line_file.py` (a file of lines) and `growing_file.py` (a file that is unfinished until it has its name).
Nothing here decides which events or frames a sink writes.
"""
