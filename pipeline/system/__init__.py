"""The machine: disk, cores, memory, paths, folders of runs, names, redaction, logs, connections, process 1.

Start with `paths.py` (the folders of a user) and `run_folder.py` (the folder of a run). Nothing here knows of
graphs, messages or stages. If an operating system lacks a call, the substitute is in here as well.
"""
