"""The parent process of a run: starts its processes, watches them, restarts them, and gives them new plans.

Start with `supervisor.py`, then `fleet.py` (all processes), `process.py` (one of them) and `lifecycle.py` (its states,
drawn). No message of a graph passes through here, and nothing here knows what a stage does.
"""
