"""One child process from inside: the loop that takes messages, runs stages, and sends what they make.

Start with `child.py` (first line to last) and `worker.py` (the loop). What the bytes look like belongs to `transport`,
how a stage is called to `execution`.
"""
