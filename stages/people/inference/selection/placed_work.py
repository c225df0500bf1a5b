"""How much of a model's calculations runs on which provider, as far as its nodes can be identified. Pure.

ONNX Runtime lists the nodes of each provider by name and operator, after it has simplified the model; the number of
operations is known for the nodes of the file. A node of the file runs where its name is listed. If the name is gone, it
runs where all nodes of its operator are listed, if they are as many as in the file; otherwise some have become
something else. If neither identifies it, no shares are reported.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set

from camgraph.stages.people.inference.engines.engine import Placement
from camgraph.stages.people.inference.model.flops import NodeWork, Work


def work_shares(work: Work, placement: Placement) -> Mapping[str, float] | None:
    """Of the operations that are counted, each provider's share, 0 to 1, in the order of its nodes' shares.

    None if nothing calculates, or if the operations or the place of any node that calculates are unknown.
    """
    if work.nodes and (only := _only(placement.nodes)):
        return {only: 1.0}
    if work.unknown or not work.total:
        return None
    found: dict[str, int] = defaultdict(int)
    whole = _still_whole(work, placement)
    for node in work.nodes:
        provider = _provider_of(node, placement, whole)
        if provider is None:
            return None
        found[provider] += node.operations or 0
    return {provider: found[provider] / work.total for provider in placement.shares()}


def _provider_of(node: NodeWork, placement: Placement, whole: Set[str]) -> str | None:
    by_name = [provider for provider, names in placement.names.items() if node.name in names]
    if by_name or node.operator not in whole:
        return _only(by_name)
    return _only(provider for provider, own in placement.nodes.items() if _count(node.operator, own))


def _still_whole(work: Work, placement: Placement) -> Set[str]:
    """The operators with as many nodes in the placement as in the file."""
    in_file = Counter(node.operator for node in work.nodes)
    return {name for name, n in in_file.items() if n == sum(_count(name, own) for own in placement.nodes.values())}


def _count(operator: str, placed: Mapping[str, int]) -> int:
    return sum(placed.get(name, 0) for name in (operator, *_MAY_BECOME.get(operator, ())))


def _only(providers: Iterable[str]) -> str | None:
    all_of_them = list(providers)
    return all_of_them[0] if len(all_of_them) == 1 else None


_MAY_BECOME: Mapping[str, tuple[str, ...]] = {
    "Conv": ("FusedConv", "QLinearConv", "ConvInteger", "Convolution", "GroupConvolution"),
    "ConvTranspose": ("Deconvolution",),
    "MatMul": (
        *("FusedMatMul", "QLinearMatMul", "MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeMatMul"),
        "FullyConnected",
    ),
    "Gemm": ("FusedGemm", "QGemm", "FullyConnected"),
}
"""The operators that engines make of one: ONNX Runtime by fusing nodes or in int8, OpenVINO by other names."""
