"""Models on another machine: an inference server that speaks KServe v2 (Triton and others), reached by gRPC.

    run --answer--> checked against the server's promises --> arrays
        --breaks its promises--> WrongOutput              costs the pictures that were asked about
        --away, slow, busy, starting again--> Unavailable     the same batch is tried again, nothing is lost
        --refused--> RunFailed                                costs the pictures that the server does not take

Imports an extra: `stages.people.inference.engines.served_models` is the way in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritonclient.grpc import InferInput

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.messages import Array
from camgraph.stages.people.inference.engines.engine import Placement, RunFailed, WrongOutput
from camgraph.stages.people.inference.engines.kserve_client import Away, Refused, ServerClient
from camgraph.stages.people.inference.engines.kserve_facts import ServedModel
from camgraph.stages.people.inference.engines.kserve_tensors import NoTensor, arrays_of, datatype_of
from camgraph.stages.people.inference.engines.server_settings import ServerSettings
from camgraph.stages.vision.recognition import Port

FIRST_RUN_S = 60.0
"""For the first request a server may load libraries, or build an engine."""

# One that starts again answers before its models are loaded; a token may be made valid on its side.
_FOR_NOW = {"NOT_FOUND", "FAILED_PRECONDITION", "UNAUTHENTICATED", "PERMISSION_DENIED"}


class KServeEngine:
    """A model on a server; each thread has a connection of its own."""

    def __init__(self, settings: ServerSettings, client: ServerClient, served: ServedModel) -> None:
        self.signature = served.signature
        self.provider = f"{served.server} on {settings.url}"
        self.placement = Placement({})
        self.most_rows: int | None = served.most_rows
        self._settings = settings
        self._client = client
        self._datatypes = {port.name: datatype_of(port) for port in served.signature.inputs}
        self._timeout_s = max(FIRST_RUN_S, settings.timeout_s)

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """All outputs by name, read-only.

        Raises Unavailable if the server does not answer now, RunFailed if it does not take this input, and WrongOutput
        if its answer differs from the outputs that it promised.
        """
        response = self._answer([self._tensor(name, array) for name, array in inputs.items()])
        arrays = {port.name: self._array(response, port) for port in self.signature.outputs}
        self._timeout_s = self._settings.timeout_s
        return arrays

    def _array(self, response: Any, port: Port) -> Array:
        """One output of an answer."""
        try:
            return arrays_of(response.outputs, response.raw_output_contents, [port])[port.name]
        except NoTensor as error:
            raise WrongOutput(
                port.name,
                f"{self._settings}: its answer is not as the server describes the model: {error}; "
                "if another model was put in its place, run the graph anew",
            ) from None

    def _answer(self, tensors: list[InferInput]) -> Any:
        s = self._settings
        try:
            result = self._client.call("infer", s.model, tensors, s.version, timeout_s=self._timeout_s)
        except Away as error:
            raise Unavailable(f"{s}: {error}; frames wait for it") from None
        except Refused as error:
            if error.code in _FOR_NOW:
                raise Unavailable(f"{s}: {error}; frames wait until it takes them") from None
            raise RunFailed(f"{s}: {error}") from None
        return result.get_response()

    def _tensor(self, name: str, array: Array) -> InferInput:
        tensor = InferInput(name, list(array.shape), self._datatypes[name])
        tensor.set_data_from_numpy(array)
        return tensor
