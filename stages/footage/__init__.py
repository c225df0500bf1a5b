"""Pictures and clips of incidents, made of the compressed packets that cameras send: nothing is encoded again.

    capture: PacketTap --socket--> sink_footage: PacketFeed --> Ring --> Still: JPEG
                                                                   '--> Clip: MP4

Start with `recorder.py`. `names.py` says what the files are called, `packets.py` what travels on the socket.
"""
