"""Facts of an inference server about a model: its inputs and outputs, and how many pictures one request may hold.

ModelReady --> ModelMetadata    names, types, shapes; a side of -1 may be any, the batch is one of them
           --> ModelConfig      Triton's: max_batch_size (0: the shapes are all there is), parameters as metadata
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.system.redaction import redacted_line
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.stages.people.inference.engines.kserve_client import Away, Refused, ServerClient
from camgraph.stages.people.inference.engines.kserve_tensors import NoTensor, port_of
from camgraph.stages.people.inference.engines.server_settings import ServerSettings
from camgraph.stages.people.inference.model.model_safety import MAX_PORTS
from camgraph.stages.vision.recognition import Signature

_SHOWN = 100
"""Letters of a server's words."""
_LISTED = 20


class ServedModel(NamedTuple):
    """A model that is ready on its server."""

    signature: Signature
    most_rows: int | None
    """The most pictures of one request, if the server gives a number."""
    server: str
    """The server's own name, such as `triton 2.50.0`."""


class Questions:
    """The questions to a server before the first run."""

    def __init__(self, client: ServerClient, settings: ServerSettings) -> None:
        self.client = client
        self._settings = settings

    def model(self) -> ServedModel:
        """The model's facts. Raises EnvironmentProblem if the server is not there, or has no such model ready."""
        if not self._ready():
            raise EnvironmentProblem(self._why_not_ready(), error_id="inference-server")
        metadata = self._about_model("get_model_metadata")
        if metadata is None:
            raise EnvironmentProblem(self._why_not_ready(), error_id="inference-server")
        config = self._about_model("get_model_config")
        server_facts = self._asked("get_server_metadata")
        most = config.config.max_batch_size if config else 0
        server = redacted_line(f"{server_facts.name} {server_facts.version}".strip(), _SHOWN) if server_facts else ""
        return ServedModel(self._signature(metadata, config), max(most, 0) or None, server or "an inference server")

    def _ready(self) -> bool:
        return bool(self._about_model("is_model_ready"))

    def _about_model(self, method: str) -> Any:
        return self._asked(method, self._settings.model, self._settings.version)

    def _asked(self, method: str, *args: str) -> Any:
        """The answer; None if the server does not know the question, or its subject."""
        try:
            return self.client.call(method, *args, timeout_s=self._settings.timeout_s)
        except Away as error:
            raise EnvironmentProblem(
                f"the inference server {self._settings.url} cannot be reached: {error}; "
                "start it, or correct `server: {url, tls}`",
                error_id="inference-server",
            ) from None
        except Refused as error:
            if error.code in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
                raise EnvironmentProblem(
                    f"the inference server {self._settings.url} does not let us in: {error}; "
                    "name the variable with its token: `server: {token_env: ...}`",
                    error_id="inference-server",
                ) from None
            return None

    def _signature(self, metadata: Any, config: Any) -> Signature:
        """Raises EnvironmentProblem if the server does not name its inputs and outputs."""
        if not metadata.inputs or not metadata.outputs:
            raise EnvironmentProblem(
                f"{self._settings}: the server does not describe its inputs and outputs; "
                "state them in the model's configuration there",
                error_id="inference-server",
            )
        ports = len(metadata.inputs) + len(metadata.outputs)
        if ports > MAX_PORTS:
            raise EnvironmentProblem(
                f"{self._settings}: {ports} inputs and outputs; expected at most {MAX_PORTS}",
                error_id="inference-server",
            )
        parameters = config.config.parameters if config else {}
        try:
            return Signature(
                tuple(port_of(tensor) for tensor in metadata.inputs),
                tuple(port_of(tensor) for tensor in metadata.outputs),
                {key: value.string_value for key, value in parameters.items()},
            )
        except NoTensor as error:
            raise EnvironmentProblem(
                f"{self._settings}: {error}; export the model with other types", error_id="inference-server"
            ) from None

    def _why_not_ready(self) -> str:
        """In the words of the server's list of models, if it has one."""
        s = self._settings
        index = self._asked("get_model_repository_index")
        entries = list(index.models) if index else []
        own = [entry for entry in entries if entry.name == s.model]
        if not entries:
            return f"{s}: not ready, or not there; load it there, or correct `server: {{model, version}}`"
        if not own:
            names = sorted({entry.name for entry in entries})
            hint = did_you_mean(s.model, names)
            return f"{s.url} has no model `{s.model}`; it has: {_listed(names)}{redacted_line(hint, _SHOWN)}"
        versions = [entry.version for entry in own]
        if s.version and s.version not in versions and any(versions):
            return f"{s.url} has no version {s.version} of model `{s.model}`; it has: {_listed(sorted(versions))}"
        states = {f"{entry.state or 'not ready'}{f' ({entry.reason})' if entry.reason else ''}" for entry in own}
        return f"{s}: not ready: {_listed(sorted(states))}; load it there, and start again"


def _listed(names: Sequence[str]) -> str:
    """A server's words, as one line of bounded length."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{', '.join(redacted_line(one, _SHOWN) for one in names[:_LISTED])}{more}"
