"""Runs camgraph beside others that do the same, each in a process tree of its own, and measures them.

    __main__ --job, as JSON on the command line--> a program that decodes clips and runs the model
                <--an answer, the last line of its output: frames, people, latencies, when it began and ended
                   meanwhile its tree's processor time and memory are read from /proc

`scripts/` holds the programs that are not ours to import: they are run by path, by the Python of an environment of
their own, and import nothing of camgraph.

Start with `contestants.py` (who takes part) and `job.py` (the order to a program).
"""
