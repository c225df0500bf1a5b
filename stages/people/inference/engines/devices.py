"""Which GPU a worker of a stage runs on.

devices: [0, 1], workers: 3      worker 0 -> GPU 0    worker 1 -> GPU 1    worker 2 -> GPU 0

The cameras are dealt out among the workers, and so among the GPUs. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from camgraph.stages.people.inference.engines.engine import ProviderName

ON_DEVICES: tuple[ProviderName, ...] = ("tensorrt", "cuda", "directml")
"""Providers that take the number of a device; ONNX Runtime calls it `device_id`."""
ON_PROCESSOR: tuple[ProviderName, ...] = ("cpu", "openvino")
"""Providers with which this machine's processor runs the model."""
_ID = "device_id"


def device_of(devices: Sequence[int], worker: int) -> int | None:
    """The GPU of this worker, counted from 0; None if the graph names none."""
    return devices[worker % len(devices)] if devices else None


def on_device(options: Mapping[str, str], provider: ProviderName, device: int | None) -> dict[str, str]:
    """The options of a provider, with its device."""
    device_option = {} if device is None or provider not in ON_DEVICES else {_ID: str(device)}
    return {**options, **device_option}


def number_of(options: Mapping[str, str]) -> int:
    """The GPU in the options of a provider; the first if they name none."""
    return int(options.get(_ID, "0"))


def device_problems(
    devices: Sequence[int], providers: Sequence[str], given: Mapping[str, Mapping[str, object]]
) -> Iterable[tuple[tuple[str, ...], str]]:
    """Mistakes in `devices`: ((path of the key), text). ``given``: the options written for each provider."""
    if not devices:
        return
    if not {*ON_DEVICES, "auto"}.intersection(providers):
        known = ", ".join(ON_DEVICES)
        yield ("devices",), f"none of the providers runs on a GPU: name one of {known} in `providers`, or remove this"
    for provider in ON_DEVICES:
        if _ID in given.get(provider, {}):
            text = "`devices` sets the GPU of each worker already: remove one of the two"
            yield ("options", provider, _ID), text
