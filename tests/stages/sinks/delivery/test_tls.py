from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from camgraph.pipeline.errors import Unavailable
from camgraph.stages.sinks.delivery.tls import (
    TlsSettings,
    client_tls,
    server_tls,
    tls_failure,
    tls_files,
    tls_problems,
)


@pytest.fixture(scope="module")
def pems(tmp_path_factory) -> Path:
    """ca.pem; server.pem and client.pem with their keys in them; client.crt, client.key; other-ca.pem; locked.key."""
    folder = tmp_path_factory.mktemp("pems")
    ca, other = trustme.CA(), trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    other.cert_pem.write_to_path(folder / "other-ca.pem")
    for name, issued in (("server", ca.issue_cert("camgraph.test")), ("client", ca.issue_cert("client.test"))):
        issued.private_key_and_cert_chain_pem.write_to_path(folder / f"{name}.pem")
        issued.private_key_pem.write_to_path(folder / f"{name}.key")
        issued.cert_chain_pems[0].write_to_path(folder / f"{name}.crt")
    lock(folder / "client.key", folder / "locked.key")
    return folder


def lock(key: Path, to: Path) -> None:
    from cryptography.hazmat.primitives import serialization as pem

    loaded = pem.load_pem_private_key(key.read_bytes(), None)
    kind, form = pem.Encoding.PEM, pem.PrivateFormat.PKCS8
    to.write_bytes(loaded.private_bytes(kind, form, pem.BestAvailableEncryption(b"pw")))


@contextmanager
def served(context: ssl.SSLContext | None) -> Iterator[int]:
    """A server on loopback that greets one client, or closes if there is no TLS with it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)

        def serve() -> None:
            connection = server.accept()[0]
            try:
                with context.wrap_socket(connection, server_side=True) if context else connection as stream:
                    stream.sendall(b"SSH-2.0-hello\r\n")
            except OSError:
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join(30)


def greeting(port: int, context: ssl.SSLContext, name: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
        with context.wrap_socket(plain, server_hostname=name) as stream:
            return stream.recv(100)


def refusal(port: int, context: ssl.SSLContext, name: str = "camgraph.test") -> str:
    with pytest.raises(ssl.SSLError) as failed:
        greeting(port, context, name)
    return tls_failure(failed.value)


def test_both_sides_show_certificates_and_are_trusted(pems) -> None:
    ours = TlsSettings(ca="ca.pem", certificate="client.crt", key="client.key")
    theirs = TlsSettings(ca="ca.pem", certificate="server.pem")
    with served(server_tls(theirs, pems)) as port:
        assert greeting(port, client_tls(ours, pems), "camgraph.test") == b"SSH-2.0-hello\r\n"


def test_a_server_refuses_clients_without_the_certificate(pems) -> None:
    with served(server_tls(TlsSettings(ca="ca.pem", certificate="server.pem"), pems)) as port:
        why = refusal(port, client_tls(TlsSettings(ca="ca.pem"), pems))
    assert "does it ask for a `certificate` of ours?" in why


@pytest.mark.parametrize(
    ("ours", "name", "text"),
    [
        (None, "camgraph.test", "name the file of that as `ca`"),
        (TlsSettings(ca="other-ca.pem"), "camgraph.test", "name the file of that as `ca`"),
        (TlsSettings(ca="ca.pem"), "127.0.0.1", "write it as `server_name`"),
        (TlsSettings(ca="ca.pem"), "other.test", "write it as `server_name`"),
    ],
)
def test_who_is_not_trusted_gets_nothing(pems, ours, name, text) -> None:
    with served(server_tls(TlsSettings(certificate="server.pem"), pems)) as port:
        assert text in refusal(port, client_tls(ours, pems), name)


def test_a_server_without_tls_is_told_apart(pems) -> None:
    with served(None) as port:
        assert "does it listen for TLS on another port?" in refusal(port, client_tls(None, pems))


@pytest.mark.parametrize(
    ("settings", "key", "text"),
    [
        ({"ca": "gone.pem"}, "ca", r"gone.pem: cannot be read: No such file"),
        ({"ca": "client.key"}, "ca", "there is no certificate in it"),
        ({"ca": "pipe"}, "ca", "is a pipe, expected a file"),
        ({"certificate": "gone.pem"}, "certificate", "cannot be read"),
        ({"certificate": "client.crt"}, "certificate", "expected a certificate and its key"),
        ({"certificate": "client.crt", "key": "gone.key"}, "key", "cannot be read"),
        ({"certificate": "client.crt", "key": "server.key"}, "key", "it is the key of another certificate"),
        ({"certificate": "client.crt", "key": "locked.key"}, "key", "it has a password: write it without one"),
    ],
)
def test_bad_files_are_named_at_first_and_waited_for_later(pems, settings, key, text) -> None:
    if not (pems / "pipe").exists():
        os.mkfifo(pems / "pipe")
    tls = TlsSettings(**settings)
    ((path, why),) = tls_problems(tls, pems)
    assert path == ("tls", key)
    with pytest.raises(Unavailable, match=text) as refused:
        client_tls(tls, pems)
    assert str(refused.value) == f"`{key}` of `tls`: {why}"


def test_right_files_have_no_problems_and_absolute_paths(pems) -> None:
    tls = TlsSettings(ca="ca.pem", certificate="client.crt", key="client.key")
    assert list(tls_problems(tls, pems)) == []
    assert list(tls_problems(None, pems)) == []
    assert tls_files(tls, pems) == (f"{pems}/ca.pem", f"{pems}/client.crt", f"{pems}/client.key")


def test_a_server_needs_a_certificate(pems) -> None:
    assert [path for path, _ in tls_problems(TlsSettings(ca="ca.pem"), pems, server=True)] == [("tls",)]
    assert list(tls_problems(TlsSettings(certificate="server.pem"), pems, server=True)) == []


def test_a_key_alone_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="name that too, as `certificate`"):
        TlsSettings(key="a.key")


@pytest.mark.parametrize("name", [".broker.local", "a..b", "a" * 64, "broker\0local"])
def test_a_name_that_no_host_can_have_is_a_mistake(name: str) -> None:
    with pytest.raises(ValueError, match="expected the name of a host"):
        TlsSettings(server_name=name)
