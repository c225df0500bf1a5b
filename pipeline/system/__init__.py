"""The machine: disk, cores, memory, paths, folders of runs, names, redaction, logs. Knows nothing of graphs and stages.

Where the operating system lacks a call, the answer to that is in here as well.
"""
