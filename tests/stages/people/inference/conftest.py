"""Models, and servers that run them: real processes on loopback, with faults at will."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

SIDE = 32
START_S = 60
"""A loaded machine takes long to import gRPC and ONNX Runtime."""
SERVER = Path(__file__).parent / "kserve_server.py"


class Models:
    """Writes small models into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def pose(self, name: str, *, batch: int | str = "n", half: bool = False) -> Path:
        """Laid out as YOLO-pose, 56 rows: one person whose place depends on the picture, to the last bit of its float.

        uint8 (n, 32, 32, 3), or float16 (n, 3, 32, 32) in [0, 1], -> float32 (n, 56, 21)
        """
        heads = np.zeros((56, 21), np.float32)
        heads[:5, 0] = (16, 16, 10, 20, 0.8)
        heads[5:, 0] = np.array([(16, 8 + index, 0.9) for index in range(17)], np.float32).ravel()
        scale = 0.0004 * (255 if half else 1)
        weights = (np.random.default_rng(1).random((3, 56, 21)) * (heads != 0) * scale).astype(np.float32)
        constants = {"weights": weights.reshape(3, -1), "heads": heads.reshape(1, -1), "shape": np.array([-1, 56, 21])}
        nodes = [
            helper.make_node("Cast", ["images"], ["floats"], to=TensorProto.FLOAT),
            helper.make_node("ReduceMean", ["floats"], ["means"], axes=[2, 3] if half else [1, 2], keepdims=0),
            helper.make_node("MatMul", ["means", "weights"], ["moved"]),
            helper.make_node("Add", ["moved", "heads"], ["flat"]),
            helper.make_node("Reshape", ["flat", "shape"], ["output0"]),
        ]
        shape = [batch, 3, SIDE, SIDE] if half else [batch, SIDE, SIDE, 3]
        kind = TensorProto.FLOAT16 if half else TensorProto.UINT8
        ports = ("images", kind, shape), ("output0", TensorProto.FLOAT, [batch, 56, 21])
        return self._save(name, nodes, *ports, constants=constants)

    def kinds(self, name: str) -> Path:
        """Says what it sees in the types that models have."""
        kinds = {"u": TensorProto.UINT8, "i": TensorProto.INT32, "l": TensorProto.INT64, "h": TensorProto.FLOAT16}
        nodes = [helper.make_node("Cast", ["images"], [output], to=kind) for output, kind in kinds.items()]
        shape = ["n", SIDE, SIDE, 3]
        ports = ("images", TensorProto.UINT8, shape), *((output, kind, shape) for output, kind in kinds.items())
        return self._save(name, nodes, *ports)

    def _save(
        self, name: str, nodes: list[Any], *ports: tuple[str, int, Any], constants: dict[str, Any] | None = None
    ) -> Path:
        """The first port is the input, the others are outputs."""
        infos = [helper.make_tensor_value_info(*port) for port in ports]
        initial = [numpy_helper.from_array(array, key) for key, array in (constants or {}).items()]
        graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], initial)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, self._folder / name)
        return self._folder / name


class Served:
    """A server with these models (see `kserve_server.py`); it keeps its port when it is started again."""

    def __init__(self, folder: Path, models: dict[str, dict[str, Any]], **spec: Any) -> None:
        self._faults = folder / "faults.json"
        self._spec_path = folder / "spec.json"
        self.models = models
        """What is served from the next start on."""
        self._spec = {"faults": str(self._faults), **spec}
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"127.0.0.1:{self._spec['port']}"

    @property
    def runs(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        self._spec_path.write_text(json.dumps({**self._spec, "models": self.models}))
        self._process = subprocess.Popen(
            [sys.executable, str(SERVER), str(self._spec_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout
        assert select.select([self._process.stdout], [], [], START_S)[0], "the server does not start"
        self._spec["port"] = json.loads(self._process.stdout.readline())["port"]

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def goes_wrong(self, **faults: Any) -> None:
        """From the next request on; without faults all is well again."""
        written = self._faults.with_suffix(".part")
        written.write_text(json.dumps(faults))
        written.replace(self._faults)


@pytest.fixture(scope="module")
def one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    server = Served(folder, {"pose": {"path": str(Models(folder).pose("pose.onnx"))}})
    yield server
    server.kill()


@pytest.fixture
def pose_server(one_server: Served) -> Iterator[Served]:
    """Serves `pose`; shared by the tests of a module, and well at the begin of each."""
    yield one_server
    one_server.goes_wrong()


@pytest.fixture
def models(tmp_path: Path) -> Models:
    return Models(tmp_path)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Starts servers: `served({"pose": {"path": ...}}, token=...)`."""
    with ExitStack() as stack:

        def make(models: dict[str, dict[str, Any]], **spec: Any) -> Served:
            server = Served(tmp_path, models, **spec)
            stack.callback(server.kill)
            return server

        yield make
