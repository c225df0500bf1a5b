"""Live cameras: connections that are opened again for ever, and pictures with honest times.

Following -> Connection -> Arrival -> Decoder -> LivePicture -> Shot
"""
