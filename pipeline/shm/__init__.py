"""Shared memory: frames and tensors in slots, so that processes exchange descriptors instead of pixels.

Start with `slots.py` (the owner's side); `mappings.py` is the readers' side, `segments.py` the files in /dev/shm.
Nothing here sends a message: `transport` does.
"""
