"""The condition of a run: counters, reports of its processes, states of its cameras, health, status.

Start with `reports.py` (the messages of a process to the supervisor) and `run_status.py` (the status that people see,
built by `status.py`).
Nothing here acts on a process, and only `event_format.py` looks into the body of an event.
"""
