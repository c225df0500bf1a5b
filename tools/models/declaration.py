"""The user's declarations about a model on the command line, and the model as it is read with them.

The commands have no graph to ask. Declarations of a graph in `decode` (format, keypoints), `infer` (input) and
`preprocess` (size) are made here by options of the same names, which all commands read in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from camgraph.pipeline.errors import UserError
from camgraph.stages.people.inference.contracts import InputSettings, read_contract, usual_feeds
from camgraph.stages.people.inference.feeds import Feed
from camgraph.stages.people.inference.signatures import signature_of_file
from camgraph.stages.vision.model_contract import InputContract
from camgraph.stages.vision.recognition import Declared, Reading, Signature, Unrecognised, recognise
from camgraph.stages.vision.window_contract import WindowContract

Size = tuple[int, int]
_NO_KIND = Declared()


@dataclass(frozen=True)
class Declaration:
    """``kind``: the model's format; ``input``: its pictures; ``size``: (width, height) of the pictures made for it;
    ``libraries``: with operators of its own, whose code runs when the model is opened.

    Facts that are not declared are read from the model.
    """

    kind: Declared = _NO_KIND
    input: InputSettings = field(default_factory=InputSettings)
    size: Size | None = None
    libraries: tuple[Path, ...] = ()

    @property
    def infer(self) -> dict[str, Any]:
        """The same as settings of `infer`, in plain values."""
        found: dict[str, Any] = dict(self.kind.facts())
        if given := self.input.model_dump(exclude_none=True):
            found["input"] = given
        if self.libraries:
            found["custom_ops"] = [str(path.resolve()) for path in self.libraries]
        return found if self.size is None else {**found, "picture_size": list(self.size)}


NOTHING_DECLARED = Declaration()


@dataclass(frozen=True)
class DeclaredModel:
    """A model's file, and the declarations about it."""

    path: Path
    declaration: Declaration = NOTHING_DECLARED

    @property
    def signature(self) -> Signature:
        """The file's own facts. Raises UserError if it is no model."""
        return signature_of_file(self.path, self.declaration.libraries)

    def contract(self) -> InputContract:
        """The form of its pictures. Raises UserError if it is unknown, or if a given size does not fit, or for a model
        of keypoints.
        """
        contract = self._contract({})
        if isinstance(contract, WindowContract):
            raise UserError(
                f"{self.path} takes windows of keypoints, and this command has pictures only",
                error_id="model-does-not-fit",
            )
        return contract

    def any_contract(self) -> InputContract:
        """As `contract`, also that of a model of keypoints, or with further inputs that `infer` fills by itself."""
        return self._contract(usual_feeds(self.signature, self.declaration.kind))

    def _contract(self, feeds: Mapping[str, Feed]) -> InputContract:
        declared = self.declaration
        if declared.kind != _NO_KIND:
            self.reading()  # a format that it has not decides nothing
        contract = read_contract(self.signature, str(self.path), declared.input, feeds, declared.kind)
        if declared.size is not None and not contract.accepts(*declared.size):
            wanted = f"{contract.width or 'any'}x{contract.height or 'any'}"
            raise UserError(
                f"--size {declared.size[0]}x{declared.size[1]}: {self.path} takes pictures of {wanted}",
                error_id="model-does-not-fit",
            )
        return contract

    def reading(self) -> Reading:
        """Its reading. Raises UserError if it is not recognised."""
        try:
            return recognise(self.signature, self.declaration.kind)
        except Unrecognised as error:
            raise UserError(
                f"{self.path}: {error}{_way_out(self.declaration.kind)}", error_id="model-does-not-fit"
            ) from None


def _way_out(declared: Declared) -> str:
    return (
        ""
        if declared.format
        else " (on the command line: --format, --outputs, and --keypoints where these do not show)"
    )
