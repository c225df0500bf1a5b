"""Messages between processes: credits, acknowledgements, and sending again what a dead process had not finished.

Start with `protocol.py` (what two processes tell each other), then `outlet.py` (sending) and `inlet.py` (receiving).
Nothing here calls a stage.
"""
