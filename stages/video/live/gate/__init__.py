"""The gate between FFmpeg and a camera that is reached by RTSP or HTTP.

    FFmpeg --loopback, without credentials--> gate --credentials, TLS--> the camera's host and port

FFmpeg follows any direction of a server: redirects, playlists, segments, on any host, and over RTSP with the
password in hand. None of its options stops that. So FFmpeg knows only the gate's address. The gate makes each
connection itself, signs requests to the camera's own host and port alone, and says why it refuses the rest.
It also cuts pictures out of what a camera sends by HTTP, since FFmpeg believes wrong boundaries and lengths.
Connections that are closed here end at once.

Start with `gate.py`. FFmpeg never learns the password of a camera.
"""
