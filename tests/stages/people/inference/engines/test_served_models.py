"""`infer` with a model on a real inference server: the same as with the file, and what happens when it is not well."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tritonclient.grpc", reason="tritonclient is not installed: pip install camgraph[triton]")

from camgraph.pipeline.errors import BadItem, CamgraphError, EnvironmentProblem, Unavailable, UserError
from camgraph.pipeline.stage import Stage
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import People, Tensor
from camgraph.stages.people.decode import Decode
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.inference.engines.served_models import signature_of_served
from camgraph.stages.people.inference.engines.server_settings import ServerSettings
from camgraph.stages.people.inference.selection.opening import Asked, open_model

Serve = Callable[..., Any]
SIDE = 32


def pictures(seq: int, rows: int = 1) -> Tensor:
    image = np.random.default_rng(seq).integers(0, 256, (rows, SIDE, SIDE, 3), dtype=np.uint8)
    fit = np.tile(np.float32([1, 1, 0, 0]), (rows, 1))
    return Tensor(stamp(seq), {"image": image}, fit, (SIDE, SIDE), (SIDE, SIDE), np.arange(rows) - 1)


def on(server: Any, model: str = "pose", **settings: Any) -> dict[str, Any]:
    return {"server": {"url": server.url, "model": model, "timeout_s": 20, **settings}}


def outputs(settings: Mapping[str, Any], folder: Path, batch: int = 3) -> list[Any]:
    """Of a few items of one to three rows."""
    items = [pictures(seq, 1 + seq % 3) for seq in range(7)]
    with opened(Infer, settings, folder=folder) as stage:
        return [tensor.arrays_by_name for tensor in feed(stage, items, batch=batch) if isinstance(tensor, Tensor)]


def same(ours: list[Any], theirs: list[Any]) -> bool:
    assert len(ours) == len(theirs) > 0
    return all(
        list(a) == list(b) and all(a[name].dtype == b[name].dtype and np.array_equal(a[name], b[name]) for name in a)
        for a, b in zip(ours, theirs, strict=True)
    )


def test_a_server_says_and_calculates_what_the_file_does(tmp_path: Path, served: Serve, models: Any) -> None:
    files = {
        "pose": models.pose("pose.onnx"),
        "half": models.pose("half.onnx", half=True),
        "four": models.pose("four.onnx", batch=4),
        "kinds": models.kinds("kinds.onnx"),
    }
    server = served({name: {"path": str(path)} for name, path in files.items()})
    for name, path in files.items():
        local = open_model(path, Asked()).engine.signature
        there = signature_of_served(ServerSettings(url=server.url, model=name), tmp_path)
        assert sides(there) == sides(local)
        assert same(outputs(on(server, name), tmp_path), outputs({"model": path.name}, tmp_path))


def sides(signature: Any) -> list[Any]:
    """Ports with open sides alike: ONNX names them, the protocol does not."""
    ports = [*signature.inputs, *signature.outputs]
    return [(p.name, p.onnx_type, [s if isinstance(s, int) else None for s in p.shape]) for p in ports]


def test_no_request_is_larger_than_the_server_takes(tmp_path: Path, served: Serve, models: Any) -> None:
    path = models.pose("pose.onnx")
    server = served({"pose": {"path": str(path), "max_batch_size": 2}})
    local = outputs({"model": path.name}, tmp_path)
    assert same(outputs(on(server), tmp_path, batch=7), local)
    assert same(outputs({**on(server), "batch_sizes": [1, 2]}, tmp_path, batch=7), local)
    with pytest.raises(UserError, match=r"model pose on 127.0.0.1:\d+ takes at most 2 pictures at once, got .* 4"):
        outputs({**on(server), "batch_sizes": [2, 4]}, tmp_path)


def test_a_server_that_knows_the_bare_protocol_alone_is_enough(tmp_path: Path, served: Serve, models: Any) -> None:
    path = models.pose("pose.onnx")
    server = served({"pose": {"path": str(path)}})
    server.goes_wrong(plain=True, answer="typed")
    assert same(outputs(on(server), tmp_path), outputs({"model": path.name}, tmp_path))
    with pytest.raises(EnvironmentProblem, match=r"model other on .*: not ready, or not there; load it there"):
        outputs(on(server, "other"), tmp_path)


def test_what_a_hostile_server_says_is_one_short_line(tmp_path: Path, served: Serve, models: Any) -> None:
    path = str(models.pose("pose.onnx"))
    server = served({"pose": {"path": path}, "away": {"path": path, "ready": False}})
    words = "x\x1b[31mRED\nFAKE LOG line" * 1000
    for model, faults, text in [
        ("away", {"words": words}, r"not ready: UNAVAILABLE (x\x1b[31mRED\nFAKE LOG line"),
        (
            "pose",
            {"sides": [-1, 56, 1 << 60]},
            "sides of [-1, 56, 1152921504606846976]; expected at most 2147483648 values",
        ),
        ("pose", {"ports": 2000}, "2001 inputs and outputs; expected at most 1000"),
    ]:
        server.goes_wrong(**faults)
        error = problem(on(server, model), tmp_path)
        assert isinstance(error, EnvironmentProblem)
        message = str(error)
        assert text in message
        assert message.isprintable()
        assert len(message) < 400
    server.goes_wrong(words=words)
    with opened(Infer, on(server), folder=tmp_path) as stage:
        assert stage._engine.provider.isprintable()


def test_several_requests_are_under_way_at_once(tmp_path: Path, served: Serve, models: Any) -> None:
    path = models.pose("pose.onnx")
    server = served({"pose": {"path": str(path)}})
    items = [pictures(seq) for seq in range(8)]
    with opened(Infer, on(server), folder=tmp_path) as stage, ThreadPoolExecutor(8) as threads:
        server.goes_wrong(delay_s=1.0)
        began = time.monotonic()
        found = [made for [made] in threads.map(lambda item: list(stage.process([item])), items)]
        took = time.monotonic() - began
    with opened(Infer, {"model": path.name}, folder=tmp_path) as stage:
        expected = feed(stage, items)
    assert [made.stamp for made in found] == [item.stamp for item in items]
    assert same([made.arrays_by_name for made in found], [made.arrays_by_name for made in expected])
    assert took < 8 * 1.0


def test_what_a_model_is_is_read_from_the_server(tmp_path: Path, served: Serve, models: Any) -> None:
    """By its parameters, which hold what an exporter wrote into the file; else by its shapes."""
    path = models.pose("pose.onnx")
    given = {"task": "pose", "names": "{0: 'horse'}", "kpt_shape": "[17, 3]"}
    server = served({"pose": {"path": str(path)}, "horses": {"path": str(path), "parameters": given}})
    assert people(server, "pose", tmp_path)
    assert people(server, "horses", tmp_path)
    with pytest.raises(UserError, match="the model knows no class person; it knows horse"):
        people(server, "horses", tmp_path, classes=["person"])
    with pytest.raises(
        UserError, match="stage stage: the model knows no class hrse; it knows horse; did you mean `horse`"
    ):
        people(server, "horses", tmp_path, classes=["hrse"])
    with pytest.raises(UserError, match=r"model pose on 127.0.0.1:\d+: its outputs .* are not those of `format: rtmo`"):
        people(server, "pose", tmp_path, format="rtmo")


def people(server: Any, model: str, folder: Path, **settings: Any) -> list[People]:
    """One in each picture."""
    with opened(Infer, on(server, model), folder=folder) as infer:
        tensors = feed(infer, [pictures(seq) for seq in range(3)])
    with opened(Decode, {**on(server, model), **settings}, folder=folder) as decode:
        found = [made for made in feed(decode, tensors) if isinstance(made, People)]
    assert [len(one) for one in found] == [1, 1, 1]
    assert found[0].keypoints.shape == (1, 17, 3)
    return found


def problem(settings: Mapping[str, Any], folder: Path) -> CamgraphError:
    """With which the stage does not open."""
    with pytest.raises(CamgraphError) as raised, opened(Infer, settings, folder=folder):
        pass
    return raised.value


def test_a_model_that_cannot_be_had_is_said_for_people(tmp_path: Path, served: Serve, models: Any) -> None:
    path = str(models.pose("pose.onnx"))
    server = served({"pose": {"path": path}, "big": {"path": path, "ready": False}})
    for settings, text in [
        (on(server, "pse"), f"{server.url} has no model `pse`; it has: big, pose; did you mean `pose`?"),
        (on(server, version="3"), f"{server.url} has no version 3 of model `pose`; it has: 1"),
        (on(server, "big"), f"model big on {server.url}: not ready: UNAVAILABLE (out of memory); load it there"),
    ]:
        error = problem(settings, tmp_path)
        assert isinstance(error, EnvironmentProblem)
        assert text in str(error)


def test_no_server_is_said_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    began = time.monotonic()
    error = problem({"server": {"url": f"127.0.0.1:{port}", "model": "pose"}}, tmp_path)
    assert time.monotonic() - began < 20
    assert isinstance(error, EnvironmentProblem)
    assert f"the inference server 127.0.0.1:{port} cannot be reached: " in str(error)
    assert "start it, or correct `server: {url, tls}`" in str(error)


def test_silent_server_is_given_up_after_timeout_s(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"127.0.0.1:{silent.getsockname()[1]}"
        error = problem({"server": {"url": url, "model": "pose", "timeout_s": 0.5}}, tmp_path)
    assert isinstance(error, EnvironmentProblem)
    assert f"the inference server {url} cannot be reached: no answer within 0.5 s" in str(error)


def test_pictures_that_the_model_does_not_take_are_refused(tmp_path: Path, served: Serve, models: Any) -> None:
    server = served({"pose": {"path": str(models.pose("pose.onnx"))}})
    image = np.zeros((1, 48, 64, 3), np.uint8)
    item = Tensor(stamp(), {"image": image}, np.float32([[1, 1, 0, 0]]), (64, 48), (64, 48), np.int64([-1]))
    with opened(Infer, on(server), folder=tmp_path) as stage:
        with pytest.raises(UserError, match=r"model pose on .* takes pictures of 32 x 32 .*got 64 x 48; set `size`"):
            feed(stage, [item])


@pytest.fixture
def at_work(tmp_path: Path, pose_server: Any) -> Iterator[tuple[Any, Stage[Any]]]:
    """A server, and the stage that uses it."""
    server = pose_server
    with opened(Infer, on(server, timeout_s=1), folder=tmp_path) as stage:
        yield server, stage


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("shape", r"shape: .* output `output0`: expected FP32 \[any, 56, 21\], got FP32 \[1, 56, 21, 1\]"),
        ("type", r"shape: .* output `output0`: expected FP32 \[any, 56, 21\], got FP64 \[1, 56, 21\]"),
        ("bytes", r"shape: .* output `output0`: expected 4704 bytes for its shape \(1, 56, 21\), got 4703"),
        ("missing", "shape: .* expected an output `output0`, got none"),
        ("nan", "nonfinite: output `output0` holds a value that is no number"),
        ("error", "model_failed: model pose on .*: the device is on fire"),
        ("invalid", "model_failed: model pose on .*: the device is on fire"),
    ],
)
def test_nonsense_is_not_believed(at_work: tuple[Any, Stage[Any]], answer: str, text: str) -> None:
    server, stage = at_work
    server.goes_wrong(answer=answer)
    with pytest.raises(BadItem, match=text):
        feed(stage, [pictures(0)])
    server.goes_wrong()
    assert feed(stage, [pictures(0)])


def test_server_with_wrong_shapes_is_refused_on_opening(tmp_path: Path, pose_server: Any) -> None:
    pose_server.goes_wrong(answer="shape")
    error = problem(on(pose_server), tmp_path)
    assert isinstance(error, UserError)
    assert "stage stage: model pose on" in str(error)
    assert "expected FP32 [any, 56, 21], got FP32 [1, 56, 21, 1]" in str(error)


def test_a_slow_server_is_waited_for(at_work: tuple[Any, Stage[Any]]) -> None:
    server, stage = at_work
    expected = feed(stage, [pictures(0)])
    server.goes_wrong(delay_s=3)
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"model pose on .*: no answer within 1 s; frames wait for it"):
        feed(stage, [pictures(0)])
    assert 0.9 < time.monotonic() - began < 20
    server.goes_wrong()
    assert same(arrays(feed(stage, [pictures(0)])), arrays(expected))


def test_a_server_may_go_and_come_back(at_work: tuple[Any, Stage[Any]]) -> None:
    """While it is away, and while it has not loaded the model yet; the stage stays open all the time."""
    server, stage = at_work
    expected = feed(stage, [pictures(0)])
    server.kill()
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"model pose on .*; frames wait for it"):
            feed(stage, [pictures(0)])
    loaded = server.models
    server.models = {"pose": {**loaded["pose"], "ready": False}}
    server.start()
    with pytest.raises(Unavailable, match=r"model pose on .*unknown model: 'pose' is not found; frames wait until"):
        feed(stage, [pictures(0)])
    server.kill()
    server.models = loaded
    server.start()
    assert same(arrays(feed(stage, [pictures(0)])), arrays(expected))


def test_a_server_may_be_restarted_between_two_frames(at_work: tuple[Any, Stage[Any]]) -> None:
    server, stage = at_work
    server.kill()
    server.start()
    assert feed_again(stage)


def feed_again(stage: Stage[Any]) -> list[Any]:
    """As the runtime does: a connection that died unnoticed may cost one try."""
    try:
        return feed(stage, [pictures(0)])
    except Unavailable:
        return feed(stage, [pictures(0)])


def arrays(made: list[Any]) -> list[Any]:
    return [tensor.arrays_by_name for tensor in made]


def test_a_token_goes_to_the_server_and_nowhere_else(
    tmp_path: Path, served: Serve, models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = served({"pose": {"path": str(models.pose("pose.onnx"))}}, token="geheim-42")
    settings = on(server, token_env="TRITON_TOKEN")
    monkeypatch.setenv("TRITON_TOKEN", "geheim-42\n")
    assert outputs(settings, tmp_path)
    for token, text in [
        ("falsch-17", "does not let us in: not the token that it should be: Bearer \\*\\*\\*; name the variable"),
        # So long that the server's answer is made shorter within it.
        ("falsch" * 60, "does not let us in: not the token that it should be: Bearer \\*\\*\\*; name the variable"),
        ("falsch-17\nx", "the value of TRITON_TOKEN holds characters that no header may have"),
        ("", "the environment variable TRITON_TOKEN is not set; it is to hold the server's token"),
    ]:
        monkeypatch.setenv("TRITON_TOKEN", token)
        error = problem(settings, tmp_path)
        assert re.search(text, str(error))
        assert "falsch" not in f"{error!r} {error.__cause__!r}"
    assert "TRITON_TOKEN" in str(InferSettings.model_validate(settings))
    with pytest.raises(EnvironmentProblem, match=r"does not let us in: .*: none; name the variable with its token"):
        outputs(on(server), tmp_path)


def test_tls_checks_who_answers(tmp_path: Path, served: Serve, models: Any) -> None:
    certificate(tmp_path, "localhost")
    server = served(
        {"pose": {"path": str(models.pose("pose.onnx"))}},
        key=str(tmp_path / "key.pem"),
        certificate=str(tmp_path / "ca.pem"),
    )
    url = server.url.replace("127.0.0.1", "localhost")
    settings = on(server, url=url, tls=True, ca="ca.pem")
    assert same(outputs(settings, tmp_path), outputs({"model": "pose.onnx"}, tmp_path))
    for wrong in ({"tls": True, "timeout_s": 3}, {"timeout_s": 3}):
        error = problem(on(server, **{"url": url, **wrong}), tmp_path)
        assert isinstance(error, EnvironmentProblem)
        assert "cannot be reached" in str(error)


def certificate(folder: Path, host: str) -> None:
    """Signed by itself."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={host}",
         "-addext", f"subjectAltName=DNS:{host}", "-keyout", folder / "key.pem", "-out", folder / "ca.pem"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
