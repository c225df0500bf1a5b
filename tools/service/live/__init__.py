"""Cameras as they are now: video, pictures, and the people in them, while somebody watches.

Start with `live_calls.py`. `watching` reads the packets of a camera once for all who watch it, and `live_video` muxes
them for browsers that play the codec.

    live_pictures      pictures for the others, made by another process
    picture_process    that process; `picture_link` is the service's end of it, `picture_maker` decodes, draws, encodes
    known_people       what the lines of the rules, which `live_calls` passes on, say of one picture

Nothing runs while nobody watches.
"""
