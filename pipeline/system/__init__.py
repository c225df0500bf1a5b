"""The machine: disk, cores, memory, paths, folders of runs, names, redaction, logs. Knows nothing of graphs and stages.

If an operating system lacks a call, the substitute is in here as well.
"""
