"""The commands of `camgraph`, a file each: they read arguments, call the packages below, and print.

Start with `stage_commands.py`, a short one. `tools/cli.py` lists them, and imports one when it is called. No
package below imports a command. `running.py` and the live table are in `display`.
"""
