"""Pixels that are not square: old recorders store 352 columns of a picture that players show twice as wide.

camgraph judges pictures as they are stored, since zones, events and clips are in stored pixels. So it says what is off.
"""

from __future__ import annotations

from av.video.stream import VideoStream

_UNSEEN = 0.02
"""Such a deviation, as of 4095:4096, changes no judgement."""

WHAT_IS_OFF = "people are squeezed or stretched, so angles, and conditions on shapes and distances, are off"
FOR_FILES = 'make a copy with square pixels, as with ffmpeg -i FILE -vf "scale=iw*sar:ih,setsar=1" COPY'
FOR_CAMERAS = "choose a resolution with square pixels in the settings of the camera, such as 1280x720"


def odd_pixel_shape(stream: VideoStream) -> str:
    """Width and height of a pixel as a player shows it, as `24:11`; "" if they are alike, or not declared."""
    shape = stream.sample_aspect_ratio
    if not shape or abs(float(shape) - 1) <= _UNSEEN:
        return ""
    return f"{shape.numerator}:{shape.denominator}"


def remark_on_pixels(shape: str) -> str:
    """About a file with pixels of this shape."""
    return f"its pixels are not square (players show them {shape}): {WHAT_IS_OFF}; {FOR_FILES}"
