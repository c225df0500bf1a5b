"""People, or things, out of what a model says: whichever of the known formats it has."""

from __future__ import annotations

from stages.inference.decoder import Decoder, DecoderSettings


class DecodeSettings(DecoderSettings):
    """Which of a model's candidates are people; what the model is shows in its file."""


class Decode(Decoder[DecodeSettings]):
    """Tensor (the outputs of a model) -> People: boxes and keypoints in frame pixels, best first."""

    settings_type = DecodeSettings
