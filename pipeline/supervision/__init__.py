"""The parent process of a run: starts its processes, watches them, restarts them, and gives them new plans.

Start with `supervisor.py`, then `fleet.py` (all processes) and `process.py` (one of them). No message of a graph passes
through here, and nothing here knows what a stage does.
"""
