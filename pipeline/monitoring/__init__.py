"""What a run knows about itself: counters, reports of its processes, states of its cameras, health, status.

Start with `reports.py` (what a process tells the supervisor) and `status.py` (what people see). Nothing here acts on a
process, and nothing looks into the body of an event but by `event_format.py`.
"""
