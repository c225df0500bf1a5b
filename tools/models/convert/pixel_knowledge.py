"""The facts about a model's pixels, kept before they are folded into its graph, where nobody sees them again.

what it is shows, and with it order and scale    folded
outputs that many kinds of models have           folded as a graph would give the pixels, with a note
what it is does not show                         refused, until somebody says it
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.errors import UserError
from stages.inference.contracts import reading_of
from stages.inference.model.pixel_folding import Normalisation
from stages.vision.model_contract import InputContract
from tools.models.declaration import DeclaredModel

_OF_MANY_KINDS = ("efficient_nms", "yolo_end2end")


def check_known(declared: DeclaredModel, contract: InputContract) -> None:
    """Raise UserError if neither the model nor the user tells how the model wants its pixels."""
    if _is_declared(declared, contract):
        return
    try:
        declared.reading()
    except UserError as error:
        raise UserError(
            f"{error}; so nobody knows how it wants its pixels, and nothing is folded: say what it is (--format), or "
            "how it wants them (--order and --scale)",
            error_id="model-conversion",
        ) from None


def _is_declared(declared: DeclaredModel, contract: InputContract) -> bool:
    given = declared.declaration.input
    return given.order is not None and (given.scale is not None or not _is_scaled(contract))


def _is_scaled(contract: InputContract) -> bool:
    """Whether pixels become other numbers: a model that takes whole numbers takes 0 to 255."""
    return contract.dtype.startswith("float")


def doubts(declared: DeclaredModel, contract: InputContract, normalisation: Normalisation) -> Iterator[str]:
    """A fact that does not show in a model of this kind, and was taken to be as usual; its exporter may have noted
    it.
    """
    reading, given = reading_of(declared.signature, declared.declaration.kind), declared.declaration.input
    if reading is None or declared.signature.task or given.order or given.scale or not _is_scaled(contract):
        return
    if reading.format in _OF_MANY_KINDS:
        yield (
            f"note: many kinds of models have outputs as these ({reading.format}), which do not show how it wants its "
            f"pixels: taken to be {contract.order}, 0 to 1; for one that wants 0 to 255 as YOLOX does: --order bgr "
            "--scale 1"
        )
    if reading.format == "classes" and normalisation.changes_nothing:
        yield (
            "note: a classifier does not show how its pixels were normalised: taken to be 0 to 1, as a graph gives "
            "them; those of torchvision want --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225"
        )
