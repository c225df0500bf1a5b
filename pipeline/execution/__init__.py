"""Running stages: building them, calling them, passing their outputs on inside one process. No sockets, no supervisor.

Start with `stage_chain.py` (the stages of one process) and `runner.py` (one stage). The same code serves a
process of its own (`worker`) and the caller's process (`pipeline.local`).
"""
