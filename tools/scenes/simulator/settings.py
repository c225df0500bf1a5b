"""The settings of a simulated camera, as values that can be checked, sent and compared."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field

from camgraph.tools.scenes.simulator.authentication import Scheme
from camgraph.tools.scenes.simulator.nal import Codec

Side = Annotated[int, Field(ge=64, le=4096, multiple_of=2)]


class Frozen(BaseModel):
    """A value: it is never changed, can be a key, and has no fields but its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ClipSettings(Frozen):
    """The pictures that a camera sends again and again.

    A clip of H.264 or H.265 is sent unchanged if no other setting is given and its keyframes are close enough to each
    other to start clients at; else it is encoded once, at the start. A setting of None stays as in the clip.
    """

    path: str | None = Field(default=None, description="A video; None is a test picture that holds its number.")
    codec: Codec | None = None
    width: Side | None = None
    height: Side | None = None
    fps: float | None = Field(default=None, gt=0, le=240, description="Pictures a second; movements keep their speed.")
    gop: int | None = Field(default=None, ge=1, description="Frames from keyframe to keyframe; by default one second.")
    b_frames: int | None = Field(default=None, ge=0, le=8, description="B-frames between two other frames.")
    seconds: float | None = Field(default=None, gt=0, description="How much of the clip, from its beginning.")

    @property
    def asks_for_encoding(self) -> bool:
        """Whether anything but the length differs from the clip as it is."""
        return (
            self.path is None
            or any((self.codec, self.width, self.height, self.fps, self.gop))
            or self.b_frames is not None
        )


class CameraSettings(Frozen):
    """One camera: its clip, and its answers."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]+$")
    clip: ClipSettings = ClipSettings()
    port: int = Field(default=0, ge=0, le=65535, description="On 127.0.0.1; 0 is any free one.")
    auth: Scheme = "none"
    user: str = Field(default="farm", pattern=r"^[^:]+$")
    password: str = Field(default="farm", repr=False)
    report_s: float = Field(default=0.5, ge=0, description="Between two sender reports; 0 sends none.")
    clock_offset_s: float = Field(default=0.0, description="By how much the camera's clock is wrong.")
    declared_fps: float | None = Field(default=None, gt=0, description="A wrong rate for the SDP.")
    seed: int = Field(default=0, description="Of session ids, SSRCs, sequence numbers and time stamps.")

    def url(self, port: int) -> str:
        """The address of the camera, with user and password if it asks for them."""
        account = "" if self.auth == "none" else f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@"
        return f"rtsp://{account}127.0.0.1:{port}/{self.name}"
