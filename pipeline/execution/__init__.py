"""Running stages: building them, calling them, passing their outputs on inside one process. No sockets, no supervisor.

Start with `stage_chain.py` (the stages of one process), `runner.py` (one stage) and `process_parts.py` (what the parts
of a process share). The same code serves a process of its own (`worker`) and the caller's process (`pipeline.local`).
"""
