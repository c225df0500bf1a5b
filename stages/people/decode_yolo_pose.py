"""`decode` for models of one format: YOLO-pose."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from camgraph.stages.people.inference.decoder import DecoderSettings, OneFormatDecoder


class DecodeYoloPoseSettings(DecoderSettings):
    """Which of a model's candidates are people."""

    format: Literal["yolo_pose"] = Field("yolo_pose", description="Of the model; `decode` takes others, too")
    output: str | None = Field(
        None, min_length=1, description="The name of its output: in short for `outputs` with one name"
    )

    @model_validator(mode="before")
    @classmethod
    def _one_of_outputs(cls, values: Any) -> Any:
        named = isinstance(values, dict) and isinstance(values.get("output"), str)
        return {"outputs": [values["output"]], **values} if named else values

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        if self.output is not None and self.outputs != (self.output,):
            raise ValueError("expected either `output` or `outputs`, got both")
        return self


class DecodeYoloPose(OneFormatDecoder[DecodeYoloPoseSettings]):
    """Tensor (the outputs of a YOLO-pose model) -> People: boxes and keypoints in frame pixels, best first."""

    settings_type = DecodeYoloPoseSettings
    models = "YOLO-pose models"
