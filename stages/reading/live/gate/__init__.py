"""What stands between FFmpeg and a camera that is reached by RTSP or HTTP.

    FFmpeg --loopback, without credentials--> gate --credentials, TLS--> the camera's host and port

FFmpeg follows wherever a server sends it: redirects, playlists, segments, on any host, and over RTSP with the password
in hand. None of its options stops that. So it is only ever told of the gate, which makes each connection itself, signs
requests to the camera's own host and port alone, and says why it refuses the rest. What is closed here ends at once.
"""
