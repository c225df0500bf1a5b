from __future__ import annotations

import json
import socket
from pathlib import Path

from camgraph.tools.scenes.simulator.event_receiver import HOST, EventReceiver


def line(number: int) -> bytes:
    return json.dumps({"id": str(number)}).encode() + b"\n"


def connect(receiver: EventReceiver) -> socket.socket:
    host, _, port = receiver.address.removeprefix("tcp://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=60)


def test_all_that_was_sent_is_there_at_the_end(tmp_path: Path) -> None:
    with EventReceiver(tmp_path / "e.jsonl", 0) as receiver, connect(receiver) as sender:
        for number in range(5000):
            sender.sendall(line(number))
    assert receiver.ids == {str(number) for number in range(5000)}
    assert (tmp_path / "e.jsonl").read_bytes() == b"".join(map(line, range(5000)))


def test_what_comes_again_counts_once_and_half_a_line_not_at_all(tmp_path: Path) -> None:
    with EventReceiver(tmp_path / "e.jsonl", 0) as receiver:
        with connect(receiver) as sender:
            sender.sendall(line(1) + line(2)[:-4])
        with connect(receiver) as sender:
            sender.sendall(line(1) + line(2) + line(3))
    assert receiver.ids == {"1", "2", "3"}
    assert (tmp_path / "e.jsonl").read_bytes() == line(1) + line(2) + line(3)


def test_a_port_that_is_taken_is_not_waited_for(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        with EventReceiver(tmp_path / "e.jsonl", port) as receiver:
            assert receiver.address != f"tcp://{HOST}:{port}"
            with connect(receiver) as sender:
                sender.sendall(line(1))
    assert receiver.ids == {"1"}


def test_a_sender_that_stays_connected_holds_nothing_up(tmp_path: Path) -> None:
    receiver = EventReceiver(tmp_path / "e.jsonl", 0)
    with receiver:
        sender = connect(receiver)
        sender.sendall(line(1))
    sender.close()
    assert receiver.ids == {"1"}
