"""The commands of `camgraph`, a file each: they read arguments, call the packages below, and print.

`tools.cli` lists them and imports one when it is called. `running.py` and the live table are in `display`.
"""
