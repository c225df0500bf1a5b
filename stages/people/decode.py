"""Makes people, or things, of a model's outputs, in any of the known formats."""

from __future__ import annotations

from camgraph.stages.people.inference.decoder import Decoder, DecoderSettings


class DecodeSettings(DecoderSettings):
    """Which of a model's candidates are people; the model's file shows its format."""


class Decode(Decoder[DecodeSettings]):
    """Tensor (the outputs of a model) -> People: boxes and keypoints in frame pixels, best first."""

    settings_type = DecodeSettings
