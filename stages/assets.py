"""The names of the assets that `camgraph assets pull` gets; `tools.assets.catalogue` describes them."""

from __future__ import annotations

from collections.abc import Sequence

from camgraph.pipeline.system.paths import ASSET_PREFIX, lost_home
from camgraph.pipeline.system.spelling import did_you_mean

MODELS = ("movenet-multipose.onnx", "movenet-lightning.onnx", "movenet-thunder.onnx")
CLIPS = ("vtest.avi",)


def how_to_get(text: str, known: Sequence[str]) -> str:
    """Advice for `asset:NAME` that is not on this machine: pull it, or name another one of these."""
    name = text.removeprefix(ASSET_PREFIX)
    if name in known:
        home = lost_home()
        return f"get it with `camgraph assets pull {name}`" + (f"; {home}" if home else "")
    return f"`camgraph assets pull` has no asset of this name, but {', '.join(known)}{did_you_mean(name, known)}"
