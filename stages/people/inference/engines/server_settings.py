"""Which model on which inference server (KServe v2, for example Triton), and how it is reached.

server: {url: "10.0.0.5:8001", model: pose, version: "1", timeout_s: 2, tls: true, token_env: TRITON_TOKEN}
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from camgraph.pipeline.errors import ProblemText, UserError
from camgraph.pipeline.stage import Settings
from camgraph.pipeline.system.paths import resolve
from camgraph.pipeline.system.redaction import HIDDEN, hide

_ENDPOINT = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?):(\d{1,5})")
_LOOPBACK = re.compile(r"localhost|127\.\d+\.\d+\.\d+|\[::1\]")
# A login, a query, `token=...` in a path.
_MAY_HOLD_SECRETS = re.compile(r"[@?#=]")
# Characters that HTTP/2 allows in a header; others would be refused with the token in the error.
_HEADER_VALUE = re.compile(r"[\x20-\x7e]+")


def _as_text(version: object) -> object:
    """A version is a text in the protocol; YAML reads a bare 1 as a number."""
    return str(version) if isinstance(version, int) and not isinstance(version, bool) else version


class ServerSettings(Settings):
    """A model on an inference server that speaks the KServe v2 protocol over gRPC."""

    url: str = Field(description="host:port of its gRPC endpoint, such as 10.0.0.5:8001")
    model: str = Field(min_length=1, description="The model's name on the server")
    version: Annotated[str, BeforeValidator(_as_text)] = Field(
        "", description="The model's version; by default the one that the server chooses"
    )
    timeout_s: float = Field(
        5.0, gt=0, le=60, description="The most seconds for one answer; keep it below the graph's `hang_s`"
    )
    tls: bool = Field(False, description="Whether the connection is encrypted and the server's certificate checked")
    ca: str | None = Field(
        None,
        min_length=1,
        description="With `tls`: a PEM file of the certificates that are trusted; by default the usual",
    )
    token_env: str | None = Field(
        None,
        pattern="^[A-Za-z_][A-Za-z0-9_]*$",
        description="The environment variable that holds the server's token, which is sent as `authorization: Bearer`",
    )
    token_header: str = Field(
        "authorization",
        pattern="^[a-z][a-z0-9_.-]*$",
        description="With `token_env`: the header; any other than `authorization` gets the token without `Bearer`",
    )

    @field_validator("url")
    @classmethod
    def _is_endpoint(cls, url: str) -> str:
        match = _ENDPOINT.fullmatch(url)
        if match is None or not 0 < int(match[2]) < 65536:
            shown = HIDDEN if _MAY_HOLD_SECRETS.search(url) else url
            raise ValueError(f"expected host:port of the server's gRPC endpoint, such as 10.0.0.5:8001, got `{shown}`")
        return url

    @field_validator("token_header")
    @classmethod
    def _is_free(cls, header: str) -> str:
        if header.startswith("grpc-") or header.endswith("-bin"):
            raise ValueError(f"expected a header of the server's, got `{header}`, which gRPC keeps for itself")
        return header

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.ca and not self.tls:
            raise ValueError("`ca` is for connections with `tls: true`: add it, or remove `ca`")
        if self.token_env and not self.tls and not self._is_local:
            raise ValueError(f"the token would travel to {self.url} in clear text: add `tls: true`")
        return self

    @property
    def _is_local(self) -> bool:
        return _LOOPBACK.fullmatch(self.url.rpartition(":")[0]) is not None

    @property
    def shown_model(self) -> str:
        """The model as events and messages name it."""
        return f"{self.model}:{self.version}" if self.version else self.model

    def __str__(self) -> str:
        return f"model {self.shown_model} on {self.url}"

    def problems(self, base_folder: Path) -> Iterator[tuple[tuple[str, ...], str]]:
        """Mistakes that show on this machine, without asking the server: ((path of the key), text)."""
        for key, find in (("token_env", self.headers), ("ca", lambda: self.trusted(base_folder))):
            try:
                find()
            except UserError as error:
                yield (key,), ProblemText.of(error)

    def headers(self) -> Mapping[str, str]:
        """The headers of each request. Raises UserError if the token is not available; never shows it."""
        if self.token_env is None:
            return {}
        token = os.environ.get(self.token_env, "").strip()
        if not token:
            raise UserError(
                f"the environment variable {self.token_env} is not set; it is to hold the server's token",
                error_id="variable-missing",
            )
        if not _HEADER_VALUE.fullmatch(token):
            raise UserError(
                f"the value of {self.token_env} holds characters that no header may have; check the token",
                error_id="inference-server",
            )
        hide([token])
        is_usual = self.token_header == "authorization"  # noqa: S105 - the name of a header
        return {self.token_header: f"Bearer {token}" if is_usual else token}

    def trusted(self, base_folder: Path) -> Path | None:
        """The file of trusted certificates, if any. Raises UserError if it does not exist."""
        if self.ca is None:
            return None
        path = resolve(self.ca, base_folder)
        if not path.is_file():
            raise UserError(f"no such file of certificates: {path}", error_id="file-missing")
        return path

    def plain(self) -> dict[str, Any]:
        """As a graph file would have it."""
        return self.model_dump(exclude_defaults=True)
