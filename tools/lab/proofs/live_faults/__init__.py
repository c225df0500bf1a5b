"""Harms cameras of a whole graph, and judges the reports of the run, the time of recovery, and the loss of the others.

Start with `cases.py` (the faults), then `trial.py` (one fault on one camera). Verdicts are pure: only
`observed_run.py` and `cameras.py` touch the run and its cameras.
"""
