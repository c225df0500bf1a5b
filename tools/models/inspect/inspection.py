"""The facts about a model, as far as its file shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from camgraph.pipeline.errors import UserError
from camgraph.stages.people.inference.engines.engine import Opened, ProviderName
from camgraph.stages.people.inference.model.flops import Work, work_of
from camgraph.stages.people.inference.model.model_files import sha256_of, stored_bytes
from camgraph.stages.people.inference.model.model_safety import checked_model, too_large_to_analyse
from camgraph.stages.people.inference.selection.opening import Asked, open_model
from camgraph.stages.people.inference.selection.placed_work import work_shares
from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.model_contract import InputContract, declared_size
from camgraph.stages.vision.recognition import Picture, Port, Reading, Signature
from camgraph.stages.vision.window_contract import WindowContract
from camgraph.tools.models.declaration import NOTHING_DECLARED, DeclaredModel

_USUAL_SIZE = (640, 640)
_SHOWN_ENTRIES = 100
_SHOWN_METADATA = 200
"""Characters of a value."""


@dataclass(frozen=True)
class Inspection:
    """All facts to show about a model; if one cannot be determined, the text gives the reason.

    ``file_bytes``: of all its files.
    """

    path: Path
    sha256: str
    file_bytes: int
    producer: str
    opsets: dict[str, int]
    parameters: int
    operators: Counter[str]
    signature: Signature
    contract: InputContract | str
    reading: Reading | str
    size: tuple[int, int]
    work: Work
    too_large: str = ""
    """The reason why its operations and its providers are not shown."""


def inspect(declared: DeclaredModel) -> Inspection:
    """A look into the file, with the user's declarations; operations are counted for a picture of the declared size.

    Raises UserError if it is no model, or contradicts the declarations.
    """
    path, signature = declared.path, declared.signature
    model = checked_model(path, custom_ops=bool(declared.declaration.libraries))
    contract, reading = _contract(declared), _reading(declared)
    size = declared.declaration.size or signature.picture_size() or declared_size(signature.metadata) or _USUAL_SIZE
    return Inspection(
        path,
        sha256_of(path),
        stored_bytes(path),
        f"{model.producer_name} {model.producer_version}".strip() or "unknown",
        {entry.domain or "ai.onnx": entry.version for entry in model.opset_import},
        sum(_count(entry.dims) for entry in model.graph.initializer),
        Counter(node.op_type for node in model.graph.node),
        signature,
        contract,
        reading,
        size,
        Work() if isinstance(contract, str) else work_of(model, {contract.name: contract.shape(1, *size[::-1])}),
        too_large_to_analyse(model),
    )


def _count(dims: list[int]) -> int:
    count = 1
    for side in dims:
        count *= side
    return count


def _contract(declared: DeclaredModel) -> InputContract | str:
    try:
        return declared.any_contract()
    except UserError as error:
        if declared.declaration != NOTHING_DECLARED:
            raise
        return str(error)


def _reading(declared: DeclaredModel) -> Reading | str:
    try:
        return declared.reading()
    except UserError as error:
        return str(error).removeprefix(f"{declared.path}: ")


def lines(found: Inspection) -> Iterator[str]:
    """The inspection as people read it; most of it is in the words of the model's maker."""
    return map(shown, _lines(found))


def _lines(found: Inspection) -> Iterator[str]:
    yield f"{found.path}  {found.file_bytes / 1e6:.1f} MB  sha256 {found.sha256}"
    opsets = _few(f"{domain} {version}" for domain, version in found.opsets.items())
    yield f"made by {found.producer}; opset {opsets}; {found.parameters / 1e6:.2f} million parameters"
    yield from _ports("input", found.signature.inputs)
    yield from _ports("output", found.signature.outputs)
    yield ""
    yield from _taken_for(found)
    yield ""
    yield from _calculation(found)
    if found.signature.metadata:
        yield ""
        yield "metadata"
        for key, value in islice(found.signature.metadata.items(), _SHOWN_ENTRIES):
            yield f"  {key}: {value if len(value) <= _SHOWN_METADATA else value[:_SHOWN_METADATA] + ' ...'}"
        if (more := len(found.signature.metadata) - _SHOWN_ENTRIES) > 0:
            yield f"  and {more:,} more"


def _ports(kind: str, ports: tuple[Port, ...]) -> Iterator[str]:
    for port in ports:
        yield f"  {kind:<6} {port.name}  {port.onnx_type} [{', '.join(map(str, port.shape))}]"


def _taken_for(found: Inspection) -> Iterator[str]:
    if isinstance(found.reading, str):
        yield f"camgraph does not recognise it: {found.reading}"
    else:
        reading = found.reading
        yield f"camgraph takes it for {reading.format}: {reading.why}"
        names = ", ".join(reading.classes[:8]) + (", ..." if len(reading.classes) > 8 else "")
        points = (
            f"{reading.keypoints} keypoints of {reading.point_values} values" if reading.keypoints else "no keypoints"
        )
        yield f"  classes: {len(reading.classes)} ({names}); {points}"
    if isinstance(found.contract, str):
        yield f"  its picture: {found.contract}"
    elif isinstance(found.contract, WindowContract):
        yield f"  its windows of keypoints: {_window(found.contract)}"
    else:
        yield f"  its picture: {_picture(found.contract, found.reading)}"


def _picture(contract: InputContract, reading: Reading | str) -> str:
    batch = "any batch" if contract.batch is None else f"batches of {contract.batch}"
    sides = f"{contract.width or 'any'} x {contract.height or 'any'}"
    place = ""
    if not isinstance(reading, str):
        place = f", {_place(reading.picture)}"
    pixels = f"pixel x {contract.scale:.6g}"
    if not contract.normalisation.changes_nothing:
        pixels = f"({pixels} - {contract.normalisation.mean}) / {contract.normalisation.std}"
    return f"{contract.dtype} {contract.layout}, {contract.order}, {pixels}, {sides}, {batch}{place}"


def _place(picture: Picture) -> str:
    if picture.fit != "letterbox":
        return "the frame stretched over it" if picture.fit == "stretch" else "the middle of the frame over it"
    corner = "the upper left corner" if picture.align == "corner" else "the middle"
    return f"the frame in {corner}, padded with {picture.pad}"


def _window(contract: WindowContract) -> str:
    batch = "any batch" if contract.batch is None else f"batches of {contract.batch}"
    skeleton = f" ({contract.skeleton})" if contract.skeleton else ""
    bodies = "1 body" if contract.bodies == 1 else f"{contract.bodies} bodies"
    sides = f"{contract.height or 'any'} steps, {contract.width or 'any'} joints{skeleton}"
    return f"{contract.dtype} {contract.axes}, {sides} of {contract.values} values, {bodies}, {batch}"


def _calculation(found: Inspection) -> Iterator[str]:
    if found.too_large:
        yield f"{found.too_large}; so its operations and its providers are not shown"
    if found.work.nodes:
        yield _amount(found.work, found.size)
    operators = _few(f"{name} {count}" for name, count in found.operators.most_common())
    yield f"{found.operators.total()} nodes: {operators}"


def _few(texts: Iterable[str]) -> str:
    """Of a model that somebody made to be unreadable, the first ones."""
    listed = list(texts)
    more = len(listed) - _SHOWN_ENTRIES
    return ", ".join(listed[:_SHOWN_ENTRIES]) + (f" and {more:,} more" if more > 0 else "")


def _amount(work: Work, size: tuple[int, int]) -> str:
    """The amount of calculation, with a note if it is unknown for some nodes."""
    total = f"{work.total / 1e9:.2f} GFLOP"
    if work.unknown:
        total = f"at least {total}" if work.total else "it is not known how many GFLOP"
    parts = [f"{name} {count / 1e9:.2f}" for name, count in work.by_operator.most_common()]
    if work.unknown:
        nodes = ", ".join(f"{name} {count}" for name, count in work.unknown.most_common())
        parts.append(f"not known of {work.unknown.total()} nodes ({nodes})")
    return f"{total} a picture of {size[0]} x {size[1]}: {', '.join(parts)}"


def open_on(declared: DeclaredModel, providers: tuple[ProviderName, ...]) -> Opened:
    """The model on the first of these providers. Raises UserError or EnvironmentProblem."""
    return open_model(declared.path, Asked(providers, libraries=declared.declaration.libraries))


def placement_lines(opened: Opened, work: Work) -> Iterator[str]:
    """Who runs which nodes, and how much of the work."""
    return map(shown, _placement_lines(opened, work))


def _placement_lines(opened: Opened, work: Work) -> Iterator[str]:
    for name, why in opened.passed_over.items():
        yield f"not on {name}: {why}"
    yield f"runs on {opened.engine.provider}"
    of_work = work_shares(work, opened.engine.placement)
    for provider, share in opened.engine.placement.shares().items():
        work_share = "" if of_work is None else f", {of_work[provider]:.1%} of its operations"
        operators = opened.engine.placement.nodes[provider]
        shown = ", ".join(f"{name} {count}" for name, count in operators.most_common())
        yield f"  {provider}: {share:.1%} of its nodes{work_share}: {shown}"
