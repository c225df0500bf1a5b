"""Live cameras: connections that are opened again for ever, and pictures with honest times.

LiveCamera: Connection -> Arrival -> Decoder -> LivePicture -> Shot -> Frame
"""
