"""TLS of sinks: whom to trust, who we are. The same settings for web servers, brokers, mail and sockets.

    tls: {ca: authority.pem, certificate: camgraph.pem, key: camgraph.key, server_name: broker.local}

The other side's certificate and name are always checked; there is no setting that turns that off. If you
made the certificate yourself, name it, or its authority, as `ca`. The files are read each time a sink connects, so
renewed certificates need no restart.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from camgraph.pipeline.errors import ProblemText, Unavailable, UserError
from camgraph.pipeline.stage import SettingProblems, Settings
from camgraph.pipeline.system.paths import id_of_unreadable, instead_of_file, resolve


def can_be_host(name: str) -> bool:
    """Whether this can be the name or the number of a host: others make Python's lookup and TLS fail like a bug."""
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return not name.startswith(".") and "\0" not in name


class TlsSettings(Settings):
    """Files are in PEM format, relative to the graph file."""

    ca: str | None = Field(
        None, min_length=1, description="Trust the authorities in this file, instead of those of the system"
    )
    certificate: str | None = Field(
        None, min_length=1, description="Our own certificate, if the other side asks for one; then those above it"
    )
    key: str | None = Field(
        None, min_length=1, description="The key of our certificate, without a password; by default in the same file"
    )
    server_name: str | None = Field(
        None, min_length=1, max_length=253, description="The name in the other side's certificate, if not its address"
    )

    @field_validator("server_name")
    @classmethod
    def _can_be_a_name(cls, name: str | None) -> str | None:
        if name is not None and not can_be_host(name):
            raise ValueError("expected the name of a host, such as broker.local")
        return name

    @model_validator(mode="after")
    def _key_has_a_certificate(self) -> Self:
        if self.key and not self.certificate:
            raise ValueError("`key` is the key of a certificate: name that too, as `certificate`")
        return self


class TlsFiles(NamedTuple):
    """For libraries that take names of files instead of a context."""

    ca: str | None
    certificate: str | None
    key: str | None


def tls_files(tls: TlsSettings, base_folder: Path) -> TlsFiles:
    """The absolute paths of the files. Raises UserError for a path that can be none."""
    ca, certificate, key = (
        str(resolve(name, base_folder)) if name else None for name in (tls.ca, tls.certificate, tls.key)
    )
    return TlsFiles(ca, certificate, key)


def tls_problems(tls: TlsSettings | None, base_folder: Path, *, server: bool = False) -> SettingProblems:
    """For `Stage.check` of a sink whose setting `tls` this is: files that are missing or wrong."""
    if server and (tls is None or not tls.certificate):
        yield ("tls",), "a server shows a certificate: name its file as `certificate`, and that of its key as `key`"
    elif tls is not None:
        yield from ((("tls", key), why) for key, why in _wrong_files(tls, base_folder))


def client_tls(tls: TlsSettings | None, base_folder: Path) -> ssl.SSLContext:
    """For a connection of ours to a server; pass `server_name` or its host as `server_hostname`.

    Raises Unavailable if a file cannot be used now.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks certificate and name; TLS 1.2 or newer
    if tls is None or not tls.ca:
        context.load_default_certs()
    if tls is not None:
        _load(context, tls, base_folder)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # `ca` may be the very certificate of the server
    return context


def server_tls(tls: TlsSettings, base_folder: Path) -> ssl.SSLContext:
    """For clients that connect to us. With `ca`, they must show a certificate of those authorities.

    Raises Unavailable if a file cannot be used now.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if tls.ca:
        context.verify_mode = ssl.CERT_REQUIRED
    _load(context, tls, base_folder)
    return context


def tls_failure(error: ssl.SSLError) -> str:
    """Why no connection came about, for people, with a way out. Holds nothing secret."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _NOT_TRUSTED.get(error.verify_code, f"its certificate is not trusted: {error.verify_message}")
    if isinstance(error, ssl.SSLEOFError):
        return "it closed the connection: does it ask for a `certificate` of ours, or not trust the one it got?"
    reason = (error.reason or "").replace("_", " ").lower()
    if "wrong version" in reason or "record layer failure" in reason:
        return "it does not answer in TLS: does it listen for TLS on another port?"
    if "alert" in reason and any(one in reason for one in _OURS_REFUSED):
        return f"it does not trust our `certificate` ({reason}): show one of an authority that it knows"
    if "certificate required" in reason or "handshake failure" in reason:
        return f"it refused the connection ({reason}): does it ask for a `certificate` of ours?"
    return f"no TLS connection: {reason or type(error).__name__}"


_NAME = "its certificate is for another name: use the name in it as the host, or write it as `server_name` of `tls`"
_UNKNOWN = "its certificate is of an authority that is not trusted: name the file of that as `ca` of `tls`"
_NOT_TRUSTED = {
    10: "its certificate has expired: renew it there, or set the clock of this machine",
    9: "its certificate is not valid yet: set the clock of this machine, or of the one that made it",
    18: "its certificate is of its own making: if it is the right one, name its file as `ca` of `tls`",
    19: _UNKNOWN,
    20: _UNKNOWN,
    62: _NAME,
    64: _NAME,
}
"""The X509_V_ERR_ numbers of OpenSSL."""
_OURS_REFUSED = ("unknown ca", "bad certificate", "certificate expired", "certificate revoked", "certificate unknown")
"""How the other side says that of ours."""


class _Encrypted(Exception):
    """A key with a password."""


def _no_password() -> str:
    """Without this, OpenSSL asks the terminal for it, and waits."""
    raise _Encrypted


def _load(context: ssl.SSLContext, tls: TlsSettings, base_folder: Path) -> None:
    for key, why in _wrong_files(tls, base_folder, context):
        raise Unavailable(f"`{key}` of `tls`: {why}")


def _wrong_files(tls: TlsSettings, base_folder: Path, context: ssl.SSLContext | None = None) -> list[tuple[str, str]]:
    """Load the files into a context: the keys of those that do not work, and why."""
    named = {"ca": tls.ca, "certificate": tls.certificate, "key": tls.key}
    paths = {key: _place(name, base_folder) for key, name in named.items() if name}
    wrong = [(key, path) for key, path in paths.items() if isinstance(path, str)]
    right = {key: path for key, path in paths.items() if isinstance(path, Path)}
    if not wrong:
        context = context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        wrong = [_why_no_authority(context, right.get("ca")), _why_not_ours(context, right)]
    return [(key, why) for key, why in wrong if why]


def _place(name: str, base_folder: Path) -> Path | str:
    """The path of a file that can be read, or why it cannot."""
    try:
        path = resolve(name, base_folder)
        kind = instead_of_file(path)
        if kind:
            return ProblemText(f"{path}: is {kind}, expected a file", error_id="file-kind")
        with path.open("rb"):
            return path
    except UserError as error:
        return ProblemText.of(error)
    except OSError as error:
        return ProblemText(f"{path}: cannot be read: {error.strerror}", error_id=id_of_unreadable(error))


def _why_no_authority(context: ssl.SSLContext, path: Path | None) -> tuple[str, str]:
    try:
        if path:
            context.load_verify_locations(path)
    except ssl.SSLError:
        return "ca", f"{path}: there is no certificate in it: expected PEM, with -----BEGIN CERTIFICATE-----"
    except OSError as error:
        return "ca", f"{path}: cannot be read: {error.strerror}"
    return "ca", ""


def _why_not_ours(context: ssl.SSLContext, paths: Mapping[str, Path]) -> tuple[str, str]:
    """("certificate" or "key", why it does not work)."""
    if "certificate" not in paths:
        return "certificate", ""
    certificate = paths["certificate"]
    secret = paths.get("key", certificate)
    try:
        context.load_cert_chain(certificate, secret, _no_password)
    except _Encrypted:
        return "key", f"{secret}: it has a password: write it without one (`openssl pkey -in ... -out ...`), mode 0600"
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            return "key", f"{secret}: it is the key of another certificate than {certificate}"
        return "certificate", f"{certificate}, {secret}: expected a certificate and its key in PEM format"
    except OSError as error:
        return "certificate", f"{certificate}, {secret}: cannot be read: {error.strerror}"
    return "certificate", ""
