"""Arrays in, arrays out: geometry, decoding, tracking, rules, drawing. No clock, no socket, no file.

Start with `letterbox.py` (pixels of the frame to pixels of the model, and back), then `decoding/`. Nothing here
imports a stage.
"""
