"""`camgraph model bench`: how fast a model runs, by provider, batch, threads and processes.

Start with `command.py`. No camera and no run takes part: each figure is of the model alone.
"""
