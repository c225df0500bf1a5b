"""Pictures and clips of incidents, made of the compressed packets that cameras send: nothing is encoded again.

    capture: PacketTap --socket--> sink_footage: PacketFeed --> Ring --> Still: JPEG
                                                                   '--> Clip: MP4

Start with `recorder.py`. `names.py` has the names of the files, `packets.py` the messages on the socket. Nothing
here sends an event by itself: `sink_footage` does.
"""
