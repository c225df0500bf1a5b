"""A real inference server for tests: KServe v2 over gRPC, with ONNX Runtime behind it, in a process of its own.

    python kserve_server.py SPEC.json     one line `{"port": N}` when it serves; ends with its standard input

SPEC    port (0: any), token ("": none), key and certificate (paths; TLS), faults (a path), models: name -> MODEL
MODEL   path, max_batch_size (0: none), parameters, ready
faults  a JSON file, read at each request: delay_s; answer: shape, type, nan, bytes, missing, typed, error, invalid;
        plain: true for a server that knows no questions but the protocol's own; words: what it says of itself and of
        models that are not ready; sides, ports: of each output, and how many of them there are
As Triton does, it names sides that may be any -1, leaves the batch out of its configuration, and refuses larger ones.
"""

# ruff: noqa: N802 - the names are those of the protocol
from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import onnxruntime as ort
from tritonclient.grpc import model_config_pb2, service_pb2
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceServicer, add_GRPCInferenceServiceServicer_to_server

TYPES = {
    "tensor(bool)": ("BOOL", "?"),
    "tensor(uint8)": ("UINT8", "u1"),
    "tensor(int8)": ("INT8", "i1"),
    "tensor(int32)": ("INT32", "i4"),
    "tensor(int64)": ("INT64", "i8"),
    "tensor(float16)": ("FP16", "f2"),
    "tensor(float)": ("FP32", "f4"),
    "tensor(double)": ("FP64", "f8"),
    "tensor(string)": ("BYTES", "O"),
}


class Model:
    """A model as it is served."""

    def __init__(self, path: str, max_batch_size: int = 0, ready: bool = True, **parameters: str) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        self.session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.max_batch_size = max_batch_size
        self.ready = ready
        self.parameters = parameters

    def run(self, inputs: dict[str, Any]) -> dict[str, Any]:
        names = [port.name for port in self.session.get_outputs()]
        return dict(zip(names, self.session.run(names, inputs), strict=True))


class Service(GRPCInferenceServiceServicer):
    def __init__(self, spec: dict[str, Any]) -> None:
        self.models = {
            name: Model(
                **{key: value for key, value in reported.items() if key != "parameters"},
                **reported.get("parameters", {}),
            )
            for name, reported in spec["models"].items()
        }
        self.token = spec.get("token", "")
        self.faults_path = Path(spec["faults"])

    def faults(self, context: Any) -> dict[str, Any]:
        """What is to go wrong now; a wrong token goes wrong always."""
        if self.token and ("authorization", f"Bearer {self.token}") not in context.invocation_metadata():
            got = dict(context.invocation_metadata()).get("authorization", "none")
            context.abort(grpc.StatusCode.UNAUTHENTICATED, f"not the token that it should be: {got}")
        faults = json.loads(self.faults_path.read_text()) if self.faults_path.exists() else {}
        time.sleep(faults.get("delay_s", 0))
        return dict(faults)

    def model(self, name: str, version: str, context: Any) -> Model:
        if name not in self.models or version not in ("", "1") or not self.models[name].ready:
            context.abort(grpc.StatusCode.NOT_FOUND, f"Request for unknown model: '{name}' is not found")
        return self.models[name]

    def ServerMetadata(self, request: Any, context: Any) -> Any:
        words = self.faults(context).get("words", "small")
        return service_pb2.ServerMetadataResponse(name=words, version="1.0")

    def ModelReady(self, request: Any, context: Any) -> Any:
        self.faults(context)
        own = self.models.get(request.name)
        ready = own is not None and own.ready and request.version in ("", "1")
        return service_pb2.ModelReadyResponse(ready=ready)

    def RepositoryIndex(self, request: Any, context: Any) -> Any:
        faults = self.faults(context)
        if faults.get("plain"):
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "no such method")
        kind = service_pb2.RepositoryIndexResponse.ModelIndex
        return service_pb2.RepositoryIndexResponse(
            models=[
                kind(
                    name=name,
                    version="1",
                    state="READY" if model.ready else "UNAVAILABLE",
                    reason="" if model.ready else faults.get("words", "out of memory"),
                )
                for name, model in self.models.items()
            ]
        )

    def ModelMetadata(self, request: Any, context: Any) -> Any:
        faults = self.faults(context)
        session = self.model(request.name, request.version, context).session
        return service_pb2.ModelMetadataResponse(
            name=request.name,
            versions=["1"],
            platform="onnxruntime_onnx",
            inputs=[described(port) for port in session.get_inputs()],
            outputs=[described(port, faults.get("sides")) for port in session.get_outputs() * faults.get("ports", 1)],
        )

    def ModelConfig(self, request: Any, context: Any) -> Any:
        if self.faults(context).get("plain"):
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "no such method")
        model = self.model(request.name, request.version, context)
        config = model_config_pb2.ModelConfig(name=request.name, max_batch_size=model.max_batch_size)
        for port in model.session.get_inputs():
            dims = sides(port)[1 if model.max_batch_size else 0 :]
            config.input.add(name=port.name, data_type=f"TYPE_{TYPES[port.type][0]}", dims=dims)
        for key, value in model.parameters.items():
            config.parameters[key].string_value = value
        return service_pb2.ModelConfigResponse(config=config)

    def ModelInfer(self, request: Any, context: Any) -> Any:
        faults = self.faults(context)
        model = self.model(request.model_name, request.model_version, context)
        inputs = {}
        for tensor, raw in zip(request.inputs, request.raw_input_contents, strict=True):
            dtype = next(dtype for name, dtype in TYPES.values() if name == tensor.datatype)
            inputs[tensor.name] = np.frombuffer(raw, dtype).reshape(tuple(tensor.shape))
            if model.max_batch_size and tensor.shape[0] > model.max_batch_size:
                context.abort(
                    grpc.StatusCode.INVALID_ARGUMENT,
                    f"inference request batch-size must be <= {model.max_batch_size} for '{request.model_name}'",
                )
        if faults.get("answer") in ("error", "invalid"):
            code = grpc.StatusCode.INTERNAL if faults["answer"] == "error" else grpc.StatusCode.INVALID_ARGUMENT
            context.abort(code, "the device is on fire")
        return answer(request, model.run(inputs), faults.get("answer"))


def sides(port: Any) -> list[int]:
    return [side if isinstance(side, int) else -1 for side in port.shape]


def described(port: Any, declared: list[int] | None = None) -> Any:
    return service_pb2.ModelMetadataResponse.TensorMetadata(
        name=port.name, datatype=TYPES[port.type][0], shape=declared or sides(port)
    )


def answer(request: Any, outputs: dict[str, Any], fault: str | None) -> Any:
    """The outputs as they are, or as a server would have them that has lost its mind."""
    response = service_pb2.ModelInferResponse(model_name=request.model_name, model_version="1")
    for place, (name, array) in enumerate(outputs.items()):
        if fault == "missing" and place == 0:
            continue
        reported = spoiled(array, fault)
        kind = next(kind for kind, dtype in TYPES.values() if np.dtype(dtype) == reported.dtype)
        tensor = response.outputs.add(name=name, datatype=kind, shape=reported.shape)
        if fault == "typed":
            tensor.contents.fp32_contents.extend(reported.ravel().tolist())
        else:
            response.raw_output_contents.append(reported.tobytes()[: -1 if fault == "bytes" else None])
    return response


def spoiled(array: Any, fault: str | None) -> Any:
    if fault == "shape":
        return array[..., None]
    if fault == "type":
        return array.astype("f8")
    return np.full_like(array, np.nan) if fault == "nan" else array


def main() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text())
    server = grpc.server(
        ThreadPoolExecutor(8),
        options=[
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
        ],
    )
    add_GRPCInferenceServiceServicer_to_server(Service(spec), server)
    address = f"127.0.0.1:{spec.get('port', 0)}"
    if spec.get("certificate"):
        pair = (Path(spec["key"]).read_bytes(), Path(spec["certificate"]).read_bytes())
        port = server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
    else:
        port = server.add_insecure_port(address)
    server.start()
    print(json.dumps({"port": port}), flush=True)  # noqa: T201 - its parent waits for it
    sys.stdin.read()
    server.stop(0).wait()


if __name__ == "__main__":
    main()
