"""Messages between processes: credits, acknowledgements, and resending messages that a dead process had not finished.

Start with `protocol.py` (the messages of two processes), then `sender.py` (sending) and `receiver.py` (receiving).
Nothing here calls a stage.
"""
