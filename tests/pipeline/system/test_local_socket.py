"""Sockets at paths: who listens, under which address."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from pathlib import Path

import pytest

from camgraph.pipeline.system.local_socket import answering_user, listening, short_address


def test_the_user_at_the_other_end_is_known() -> None:
    ours, its = socket.socketpair()
    with ours, its:
        assert answering_user(ours) == os.getuid()


@pytest.mark.parametrize("folder", ["short", "long" * 40])
def test_a_socket_listens_at_a_path_of_any_length(tmp_path: Path, folder: str) -> None:
    path = tmp_path / folder / "socket"
    path.parent.mkdir()
    path.touch()  # of a process that was killed
    with closing(listening(path, 1)) as server, socket.socket(socket.AF_UNIX) as client, short_address(path) as address:
        client.connect(address)
        server.accept()[0].close()
        is_shown = server.getsockname() == str(path)
    assert is_shown == (folder == "short"), "Linux shows others where it listens"
