"""Stages behind a model: settings that are left open are read from the model, in a file or on a server.

what is declared here  ── wants, when the graph is checked ───> `infer`, which reads its model by it as well
models in files      ── follow, when the graph is checked ──> the settings, as they stand in the plan
model on a server    ── open, when the server is asked ─────> the settings of this process
neither of them      ── the first item, by its outputs ─────> the settings of this process
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from pydantic import Field

from camgraph.pipeline.errors import SettingError, UserError
from camgraph.pipeline.stage import Settings, Stage, Upstream
from camgraph.stages.messages import Tensor
from camgraph.stages.people.inference.contracts import reading_of
from camgraph.stages.people.inference.engines.served_models import signature_of_served
from camgraph.stages.people.inference.engines.server_settings import ServerSettings
from camgraph.stages.people.inference.model.model_files import find_libraries, find_model
from camgraph.stages.people.inference.signatures import read_signature, signature_of_file, signature_of_item
from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.recognition import Declared, Reading, Signature

_MOST_SHOWN = 5


class BehindModelSettings(Settings):
    """Settings that every stage behind a model has."""

    server: ServerSettings | None = Field(
        None,
        description="The server that runs the model; the stage asks it about the model when it opens; by "
        "default that of the `infer` before it",
    )


class ModelBefore(NamedTuple):
    """A model before a stage, with none between them, and its facts."""

    name: str
    reading: Reading


S = TypeVar("S", bound=BehindModelSettings)


class BehindModel(Stage[S]):
    """Base of the stages behind a model: they state the model's facts that they know, and take settings from the
    model.
    """

    settings_type: ClassVar[type[Settings]] = BehindModelSettings

    @classmethod
    def declared(cls, settings: S) -> Declared:
        """The facts about the model in the settings."""
        raise NotImplementedError

    @classmethod
    def followed(cls, settings: S, found: ModelBefore) -> Mapping[str, Any]:
        """The settings that follow from the model. Raises UserError if it is of another kind."""
        raise NotImplementedError

    @classmethod
    def read(cls, signature: Signature, name: str, declared: Declared) -> Reading:
        """Read the model's facts; ``name`` is its in errors. Raises UserError if they cannot be read."""
        return read_signature(signature, name, declared)

    @classmethod
    def wants(cls, settings: S, base_folder: Path) -> Mapping[str, Any]:
        """Pass the model's facts from these settings to `infer`, and to the stage that makes its pictures."""
        return cls.declared(settings).facts()

    @classmethod
    def follow(cls, settings: S, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        models = upstream.nearest("model_file", "model_server")
        found = {stage: cls._behind(settings, base_folder, stage, facts) for stage, facts in models.items()}
        return _same(found)

    @classmethod
    def _behind(cls, settings: S, base_folder: Path, stage: str, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The settings that follow from the model that ``stage`` runs."""
        own, known = cls.declared(settings), Declared(**facts.get("model_declared", {}))
        agreed = _agreed(own, known, stage)
        if "model_file" in facts:
            model = _in_file(facts["model_file"], base_folder)
            return cls.followed(settings, model.read_by(cls.read, agreed, known, stage))
        if agreed.facts() != known.facts():
            raise UserError(_not_passed_on(stage, agreed), error_id="model-does-not-fit")
        found = {key: value for key, value in known.facts().items() if key in cls.settings_type.model_fields}
        return found if settings.server else {"server": facts["model_server"], **found}

    def known_settings(self) -> S:
        """With all that is known of the model, when the stage opens.

        Raises UserError if a server's model is of another kind, EnvironmentProblem if it cannot be asked.
        """
        s = self.settings
        if not s.server:
            return s
        signature = signature_of_served(s.server, self.context.base_folder)
        found = ModelBefore(str(s.server), self.read(signature, str(s.server), self.declared(s)))
        return self._followed(found)

    def shown_settings(self, item: Tensor) -> S:
        """With the facts that an item's outputs show, for a stage that has no model before it.

        Raises UserError if they contradict the declared facts.
        """
        declared, name = self.declared(self.settings), self._named("the model before it")
        found = ModelBefore(name, self.read(signature_of_item(item, declared), name, declared))
        return self._followed(found)

    def _followed(self, found: ModelBefore) -> S:
        try:
            return self.settings.model_copy(update=dict(self.followed(self.settings, found)))
        except SettingError as error:
            raise UserError(self._named(str(error)), error_id="model-does-not-fit") from None

    def _named(self, text: str) -> str:
        """With the stage's name."""
        return f"stage {self.context.stage}: {text}"


class _InFile(NamedTuple):
    """A model in a file, by its name and its metadata."""

    name: str
    signature: Signature

    def read_by(
        self, read: Callable[[Signature, str, Declared], Reading], agreed: Declared, known: Declared, stage: str
    ) -> ModelBefore:
        """The model's facts. Raises UserError if they cannot be read, or if ``stage`` contradicts them."""
        reading = read(self.signature, self.name, agreed)
        if agreed.facts() != known.facts():
            there = reading_of(self.signature, known)
            if there is None or (there.format, there.keypoints) != (reading.format, reading.keypoints):
                raise UserError(_not_passed_on(stage, agreed), error_id="model-does-not-fit")
        return ModelBefore(self.name, reading)


def _in_file(facts: Mapping[str, Any], base_folder: Path) -> _InFile:
    """Raises UserError if it is no model."""
    path = find_model(facts["path"], base_folder)
    return _InFile(str(path), signature_of_file(path, find_libraries(facts["custom_ops"], base_folder)))


def _agreed(own: Declared, known: Declared, stage: str) -> Declared:
    """The facts that this stage and ``stage``, which runs the model, state together. Raises UserError if they
    differ.
    """
    for key, value in own.facts().items():
        there = known.facts().get(key, value)
        if there != value:
            raise UserError(
                f"it takes the model's {key} to be {value}, and `{stage}` {there}: write the same in both",
                error_id="model-does-not-fit",
            )
    return own.over(known)


def _same(found: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The settings from all models, if they agree: stage -> settings. Raises UserError if they differ."""
    if not found:
        return {}
    (first, settings), *others = found.items()
    for stage, other in others:
        keys = [key for key in dict.fromkeys(("server", *settings, *other)) if settings.get(key) != other.get(key)]
        if keys:
            one, two = (_in_words(keys[0], each.get(keys[0])) for each in (settings, other))
            raise UserError(
                f"the models of `{first}` and `{stage}` come together here and are read differently: the first has "
                f"{one}, the second {two}; put a stage like this one behind each, and merge what these make"
                + ("; or say here what the classes of both are: `class_names`" if keys == ["class_names"] else ""),
                error_id="model-does-not-fit",
            )
    return settings


def _in_words(key: str, value: Any) -> str:
    """A setting and its value, for people."""
    if not value:
        return f"no {key}"
    if key == "server":
        return str(ServerSettings.model_validate(value))
    if not isinstance(value, Sequence) or isinstance(value, str):
        return f"{key} {value}"
    names = list(map(shown, value))
    return f"{key} {', '.join(names[:_MOST_SHOWN])}{f', ... ({len(names)})' if len(names) > _MOST_SHOWN else ''}"


def _not_passed_on(stage: str, declared: Declared) -> str:
    written = ", ".join(f"{key}: {value}" for key, value in declared.facts().items())
    return (
        f"`{stage}` does not get these declarations about its model, because other stages are between: "
        f"write `{written}` there as well"
    )
