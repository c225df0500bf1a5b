"""Messages between processes: credits, acknowledgements, and resending messages that a dead process had not finished.

Start with `protocol.py` (the messages of two processes), then `outlet.py` (sending) and `inlet.py` (receiving). Nothing
here calls a stage.
"""
