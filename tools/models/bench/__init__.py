"""`camgraph model bench`: how fast a model runs, by provider, batch, threads and processes. Start with `command.py`."""
