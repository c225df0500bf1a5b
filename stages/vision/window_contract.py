"""The windows of keypoints that a model wants, read from its input. Pure.

    float32 [n, 3, 100, 17, 1]   -> nctvm: x, y, score; steps; joints; bodies       ST-GCN
    float32 [n, 1, 100, 17, 3]   -> nmtvc: bodies; steps; joints; x, y, score       PYSKL, MMAction2
    float32 [n, 3, 100, 17]      -> nctv, and [n, 100, 17, 3] ntvc: if somebody says so, as they may be pictures

Windows come as float32 (n, T, V, 3). To all that runs models, a window is a picture whose width is the joints and whose
height is the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.keypoint_windows import JOINTS, Coordinates, Skeleton
from camgraph.stages.vision.model_contract import DTYPES, ContractError, Converter, InputContract, LayoutError

KEYPOINTS = "keypoints"
"""The name of the windows in a Tensor."""
WindowLayout = Literal["nctvm", "nmtvc", "nctv", "ntvc"]
WINDOW_LAYOUTS: tuple[WindowLayout, ...] = get_args(WindowLayout)
USUAL_SIZE = (17, 100)
MOST_BODIES = 10


@dataclass(frozen=True)
class WindowContract(InputContract):
    """The windows that a model wants. `width` and `height` are the joints and the steps, None if it takes any.

    `bodies`: how many people a window has; those behind the first are zeros. `values`: of a joint, x, y and perhaps
    the score.
    """

    axes: WindowLayout = "nctvm"
    bodies: int = 1
    values: int = 3

    @property
    def array(self) -> tuple[str, str]:
        return KEYPOINTS, "float32"

    def shape(self, rows: int, height: int, width: int) -> tuple[int, ...]:
        sides = {"n": rows, "c": self.values, "t": height, "v": width, "m": self.bodies}
        return tuple(sides[axis] for axis in self.axes)

    @property
    def coordinates(self) -> Coordinates:
        """As usual for models of this layout."""
        return "centred" if self.axes in ("nctvm", "nctv") else "signed"

    @property
    def skeleton(self) -> Skeleton | None:
        """By the number of the joints; None if that is another one, or open."""
        return next((name for name, joints in JOINTS.items() if joints == self.width), None)


def is_window(shape: Sequence[int | str | None], layout: str | None) -> bool:
    """Whether an input takes windows: five axes, or a layout that says so."""
    return layout in WINDOW_LAYOUTS if layout is not None else len(shape) == 5


def window_contract(
    name: str, shape: Sequence[int | str | None], onnx_type: str, layout: WindowLayout | None
) -> WindowContract:
    """The contract of an input as ONNX Runtime describes it. Raises ContractError, LayoutError for a wrong layout."""
    declared = f"input `{shown(name)}` is {onnx_type} {list(shape)}"
    if DTYPES.get(onnx_type) not in ("float32", "float16"):
        raise ContractError(f"{declared}; windows of keypoints are float32 or float16")
    sides = [side if isinstance(side, int) and side > 0 else None for side in shape]
    axes = layout or _axes(declared, sides)
    if len(axes) != len(sides):
        raise LayoutError(f"{declared}; the layout {axes} has {len(axes)} axes")
    by_axis = dict(zip(axes, sides, strict=True))
    values, bodies = by_axis["c"] or 3, by_axis.get("m") or 1
    if values not in (2, 3) or bodies > MOST_BODIES:
        raise LayoutError(
            f"{declared}; that is not the layout {axes}: its axis c is 2 or 3 (x, y, score), and m, the people, is at "
            f"most {MOST_BODIES}"
        )
    batch, joints, steps = by_axis["n"], by_axis["v"], by_axis["t"]
    return WindowContract(
        name, "nchw", DTYPES[onnx_type], "rgb", 1.0, batch, joints, steps, axes=axes, bodies=bodies, values=values
    )


def _axes(declared: str, sides: Sequence[int | None]) -> WindowLayout:
    """By the place of the 3 values of a joint, or of 2 if there are no 3; the other end counts the bodies."""
    second, last = sides[1], sides[4]
    for values in (3, 2):
        if (second == values) != (last == values):
            bodies = last if second == values else second
            if bodies is None or bodies <= MOST_BODIES:
                return "nctvm" if second == values else "nmtvc"
    what = (
        "can be nctvm and nmtvc" if second == last else "is neither nctvm ([n, 3, T, V, M]) nor nmtvc ([n, M, T, V, 3])"
    )
    raise ContractError(
        f"{declared}; for windows of keypoints, that {what}: if it is one of them, say which in `input: {{layout: "
        "nctvm}`; volumes of heat maps or pictures are not made here"
    )


class TakesBatch(Protocol):
    """Writes pictures, or windows, as a model wants them."""

    def batch(self, pictures: Sequence[NDArray[Any]]) -> NDArray[Any]: ...


class WindowConverter:
    """Writes windows as a model wants them."""

    def __init__(self, contract: WindowContract) -> None:
        self._contract = contract

    def batch(self, pictures: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The model's input for these windows, each float32 (n, T, V, 3) of one size."""
        contract = self._contract
        windows = np.concatenate(pictures)[..., : contract.values]
        rows, steps, joints, _ = windows.shape
        out = np.zeros(contract.shape(rows, steps, joints), contract.dtype)
        order = ["ntvc".index(axis) for axis in contract.axes if axis != "m"]
        _first_body(out, contract.axes)[...] = windows.transpose(order)
        return out


def _first_body(out: NDArray[Any], axes: WindowLayout) -> NDArray[Any]:
    """A view of the first body's rows."""
    return out[tuple(0 if axis == "m" else slice(None) for axis in axes)]


def converter_of(
    contract: InputContract, new_array: Callable[[int, str], NDArray[Any]] = np.empty, *, in_place: bool = True
) -> TakesBatch:
    """The converter for a model's input; one for each thread."""
    if isinstance(contract, WindowContract):
        return WindowConverter(contract)
    return Converter(contract, new_array, in_place=in_place)
