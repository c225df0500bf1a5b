"""Hands events and frames to the program that has started the run with `import camgraph` (`src/camgraph/inbox.py`).

    sink_api_events, sink_api_tracks, sink_api_frames  --unix socket--> the program
                                                       <--credits, acks--

    parcel.py   the messages, as bytes
    link.py     the sinks' side of the socket
    feed.py     every frame to a reader of files, the newest one to a reader of live cameras

Start with `link.py`. The program's side is not here, and nothing here imports it.
"""
