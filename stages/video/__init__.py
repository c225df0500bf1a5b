"""The stage `capture`: video files, folders of pictures, live cameras; their times, and which frames are taken.

before the run   camera (the settings), addresses, inspection, examiner, examination, probe
files            opening, contents, tiff, video, places, recording, pictures, playlists, scripts
times            timeline, dates, bare_times
frames           shots, pixels, pixel_shape
limits           formats, ffmpeg_memory, file_memory, slot_memory, waiting, ffmpeg_errors, ffmpeg_log
footage          packets, tap: the packets of a camera for who keeps pictures and clips
cameras          live/

Start with `capture.py`, then `recording.py` for files, and `live/` for cameras. Nothing here runs a model, or knows
the graph around `capture`.
"""
