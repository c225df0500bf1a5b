"""The way to models on inference servers; the client is an extra, and loaded only if there is a server."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.stages.people.inference.engines.server_settings import ServerSettings
from camgraph.stages.vision.recognition import Signature

if TYPE_CHECKING:
    from camgraph.stages.people.inference.engines.kserve_engine import KServeEngine
    from camgraph.stages.people.inference.engines.kserve_facts import Questions

MISSING = "models on a server need the package tritonclient; get it with `pip install 'camgraph[triton]'`"


def is_installed() -> bool:
    """Whether the package is there, with its gRPC; nothing is loaded."""
    return find_spec("tritonclient") is not None and find_spec("grpc") is not None


def open_served(settings: ServerSettings, base_folder: Path) -> KServeEngine:
    """The model, ready to run. Raises EnvironmentProblem if it is not available now, and UserError for the settings."""
    questions = _questions(settings, base_folder)
    from camgraph.stages.people.inference.engines.kserve_engine import KServeEngine  # noqa: PLC0415 - an extra

    return KServeEngine(settings, questions.client, questions.model())


def signature_of_served(settings: ServerSettings, base_folder: Path) -> Signature:
    """The model's signature. Raises as `open_served`."""
    return _questions(settings, base_folder).model().signature


def _questions(settings: ServerSettings, base_folder: Path) -> Questions:
    if not is_installed():
        raise EnvironmentProblem(MISSING, error_id="extra-missing")
    from camgraph.stages.people.inference.engines.kserve_client import ServerClient  # noqa: PLC0415 - an extra, and it takes half a second
    from camgraph.stages.people.inference.engines.kserve_facts import Questions  # noqa: PLC0415

    ca = settings.trusted(base_folder)
    return Questions(ServerClient(settings.url, tls=settings.tls, ca=ca, headers=settings.headers()), settings)
