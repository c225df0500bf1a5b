"""Who asks the model over its socket, and what happens to those who ask wrongly."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from structlog import get_logger

from camgraph.pipeline.errors import BadItem, EnvironmentProblem, UserError
from camgraph.pipeline.messages import Array
from camgraph.pipeline.system.side_link import framed
from camgraph.pipeline.testing import stamp
from camgraph.stages.messages import Tensor
from camgraph.stages.people.inference.model_service import ModelService, ask_model

WITHIN_S = 60.0
REQUEST = {"shape": [1, 4, 4, 3], "fit": [1, 1, 0, 0], "frame_size": [4, 4], "pixels": bytes(48)}
WRONG = (
    b"no message\n", framed(None), framed({"shape": [1, 4, 4, 3]}),
    *(framed(REQUEST | change) for change in (
        {"shape": [1, 99999, 99999, 3]}, {"shape": [1, 0, 4, 3], "pixels": b""}, {"pixels": bytes(47)},
        {"pixels": "x" * 48}, {"fit": [1, 1, 0, "x"]}, {"frame_size": 4},
    )),
)  # fmt: skip


def asked(grey: int = 7, side: int = 4) -> Tensor:
    picture = np.full((1, side, side, 3), grey, np.uint8)
    return Tensor(stamp(), {"image": picture}, np.array([[1, 1, 0, 0]], np.float32), (side, side), (side, side))


def model(tensor: Tensor) -> Mapping[str, Array]:
    """The mean of the picture, and an output without rows."""
    mean = float(tensor.arrays_by_name["image"].mean())
    if mean == 1:
        raise BadItem("model_failed", "it does not like this one")
    if mean == 2:
        raise ZeroDivisionError
    return {"mean": np.array([[mean]], np.float32), "none": np.empty((1, 0, 6), np.float32)}


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    service = ModelService(tmp_path / "model-0", model, get_logger())
    service.open()
    yield tmp_path / "model-0"
    service.close()
    assert not (tmp_path / "model-0").exists()


def test_the_outputs_come_back_as_they_are(path: Path) -> None:
    answer = ask_model(path, asked(9))
    assert answer.tensor.arrays_by_name["mean"].tolist() == [[9.0]]
    assert answer.tensor.arrays_by_name["none"].shape == (1, 0, 6)
    assert answer.tensor.frame_size == (4, 4)
    assert answer.seconds >= 0


@pytest.mark.parametrize(("grey", "why"), [(1, "it does not like this one"), (2, "the log of the run")])
def test_a_failure_costs_one_answer(path: Path, grey: int, why: str) -> None:
    with pytest.raises(UserError, match=why):
        ask_model(path, asked(grey))
    assert ask_model(path, asked(3)).tensor.arrays_by_name["mean"].tolist() == [[3.0]]


@pytest.mark.parametrize("sent", WRONG)
def test_nonsense_is_answered_in_words(path: Path, sent: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(WITHIN_S)
        client.connect(str(path))
        client.sendall(sent)
        assert b"expected" in client.recv(1000)
    assert ask_model(path, asked()).tensor.arrays_by_name["mean"].tolist() == [[7.0]]


def test_without_a_service_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="does not answer"):
        ask_model(tmp_path / "model-0", asked())
