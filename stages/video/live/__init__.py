"""Live cameras: connections that are opened again for ever, and pictures with honest times.

LiveCamera: Connection -> Arrival -> Decoder -> LivePicture -> Shot -> Frame

Start with `live_camera.py`, the loop of a camera. Decisions have modules of their own, such as `camera_problems.py`,
`retries.py` and `skipping.py`. Nothing here knows the graph: a camera yields frames, and reports its
state.
"""
