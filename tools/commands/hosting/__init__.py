"""camgraph as a service of systemd.

needs          what a graph needs of the machine: programs, folders, devices
unit           the text of the unit; pure
installation   the files on the machine: written, checked, removed

Start with `unit.py`. Only `installation.py` changes the machine.
"""
