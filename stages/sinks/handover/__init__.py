"""Hands events and frames to the program that has started the run with `import camgraph` (`src/camgraph/inbox.py`).

    sink_api_events, sink_api_tracks, sink_api_frames  --unix socket--> the program
                                                       <--credits, acks--

    parcel.py   the messages, as bytes
    link.py     the sinks' side of the socket
    feed.py     every frame to a reader of files, the newest one to a reader of live cameras

These sockets are no side channels (`pipeline.system.side_channel`), although they look like some:

- The sink connects and the program listens, so that a sink that is restarted finds its program again.
- Nothing is left out, and no reader is parted with for being slow: a parcel is sent on a credit, and stays the sink's
  until it is acknowledged. A follower of a side channel gives no credits and no acks.
- Pixels go from their array into the socket, without a copy in a message.

Start with `link.py`. The program's side is not here, and nothing here imports it.
"""
