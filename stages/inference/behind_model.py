"""Stages behind a model: what their settings do not say is read from the model, in a file or on a server.

model in a file      ── follow, when the graph is checked ──> the settings, as they stand in the plan
model on a server    ── open, when the server is asked ─────> the settings of this process
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from pydantic import Field

from pipeline.stage import Settings, Stage, Upstream
from stages.inference.model_files import find_libraries, find_model
from stages.inference.served_models import signature_of_served
from stages.inference.server_settings import ServerSettings
from stages.inference.signatures import read_model, read_signature
from stages.vision.recognition import Reading, Stated


class BehindModelSettings(Settings):
    """What each stage behind a model is told of it."""

    server: ServerSettings | None = Field(
        None,
        description="The server that runs the model, which is asked what the model is when the stage opens; by default "
        "that of the `infer` before it",
    )


class ModelBefore(NamedTuple):
    """The nearest model before a stage, and what it is."""

    name: str
    reading: Reading


S = TypeVar("S", bound=BehindModelSettings)


class BehindModel(Stage[S]):
    """Base of the stages behind a model, which say what they know of it, and which settings follow from it."""

    settings_type: ClassVar[type[Settings]] = BehindModelSettings

    @classmethod
    def stated(cls, settings: S) -> Stated:
        """What the settings say of the model."""
        raise NotImplementedError

    @classmethod
    def followed(cls, settings: S, found: ModelBefore) -> Mapping[str, Any]:
        """The settings that follow from the model. Raises UserError where it is of another kind."""
        raise NotImplementedError

    @classmethod
    def follow(cls, settings: S, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        models = [said for said in upstream.stages.values() if "model_file" in said or "model_server" in said]
        nearest = models[-1] if models else {}
        if "model_file" in nearest:
            return cls.followed(settings, _in_file(nearest["model_file"], base_folder, cls.stated(settings)))
        return {"server": nearest["model_server"]} if nearest and settings.server is None else {}

    def known_settings(self) -> S:
        """With all that is known of the model, when the stage opens.

        Raises UserError where a server's model is of another kind, EnvironmentProblem where it cannot be asked.
        """
        s = self.settings
        if not s.server:
            return s
        signature = signature_of_served(s.server, self.context.base_folder)
        found = ModelBefore(str(s.server), read_signature(signature, str(s.server), self.stated(s)))
        return s.model_copy(update=dict(self.followed(s, found)))


def _in_file(said: Mapping[str, Any], base_folder: Path, stated: Stated) -> ModelBefore:
    """Raises UserError where it cannot be said what the model is."""
    path = find_model(said["path"], base_folder)
    return ModelBefore(str(path), read_model(path, stated, find_libraries(said["custom_ops"], base_folder)))
