"""configs/deploy and the Makefile: what can be known of containers and environments without building one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from camgraph.pipeline.graph import load_graph, plan_of
from camgraph.tools.commands.hosting.needs import assets, written_folders

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "configs" / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text("utf-8")
USER = 10001


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text("utf-8")))


def manifest(kind: str) -> dict[str, Any]:
    (found,) = [one for one in documents("kubernetes.yaml") if one["kind"] == kind]
    return found


COMPOSE = documents("compose.yaml")[0]["services"]["camgraph"]
POD = manifest("Deployment")["spec"]["template"]["spec"]
CONTAINER = POD["containers"][0]


def test_the_graph_is_right_and_writes_the_volume_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in COMPOSE["secrets"]:
        monkeypatch.setenv(name, "secret-of-nobody")
    monkeypatch.setenv("CAMGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "data" / "footage").mkdir(parents=True)
    text = (DEPLOY / "graph.yaml").read_text("utf-8")
    (model,) = re.findall(r"asset:([\w.-]+)", text)
    assert f'ARG ASSETS="{model}"' in CONTAINERFILE
    outputs = re.findall(r"(?:path|history): (/[\w/.]+)", text)
    assert len(outputs) == 3
    assert all(output.startswith("/data/") for output in outputs)
    (tmp_path / "rules.yaml").write_text((DEPLOY / "rules.yaml").read_text("utf-8"))
    light = re.sub(r"\n  (capture|prepare|infer|people|tracks): .*", "", text.replace("/data/", f"{tmp_path}/data/"))
    light = re.sub(r"front: \{.*\}", "front: {frames: 3, live: true}", light)
    light = light.replace("stages:", "stages:\n  src: {use: count_source}\n  tracks: {use: stands, from: src}")
    (tmp_path / "graph.yaml").write_text(light)
    graph = load_graph(tmp_path / "graph.yaml", strict=True)
    assert written_folders(graph) == [tmp_path / "data", tmp_path / "data" / "footage"]
    assert assets(graph) == set()
    assert plan_of(graph).live_cameras == ("front",)


def test_kubernetes_runs_the_same_graph() -> None:
    data = manifest("ConfigMap")["data"]
    for name in ("graph.yaml", "rules.yaml"):
        assert yaml.safe_load(data[name]) == yaml.safe_load((DEPLOY / name).read_text("utf-8"))


def test_the_page_needs_a_token_and_this_machine() -> None:
    page = yaml.safe_load((DEPLOY / "graph.yaml").read_text("utf-8"))["stages"]["page"]["with"]
    port = page["address"].rpartition(":")[2]
    assert [token["token"] for token in page["tokens"]] == ["${secret:page}"]
    assert COMPOSE["ports"] == [f"127.0.0.1:{port}:{port}"]
    (named,) = CONTAINER["ports"]
    assert str(named["containerPort"]) == port
    assert CONTAINER["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": named["name"]}
    service = manifest("Service")["spec"]
    assert service["selector"].items() <= manifest("Deployment")["spec"]["template"]["metadata"]["labels"].items()
    assert [(str(one["port"]), one["targetPort"]) for one in service["ports"]] == [(port, named["name"])]
    assert service["publishNotReadyAddresses"]
    extras = [one.strip('"') for one in re.findall(r"EXTRAS=(\S+)", CONTAINERFILE)]
    extras.append(documents("compose.cuda.yaml")[0]["services"]["camgraph"]["build"]["args"]["EXTRAS"])
    assert all("serve" in one.split(",") for one in extras)


def test_each_secret_that_the_graph_names_is_given() -> None:
    named = set(re.findall(r"\$\{secret:(\w+)\}", (DEPLOY / "graph.yaml").read_text("utf-8")))
    assert named == {*COMPOSE["secrets"]} == documents("compose.yaml")[0]["secrets"].keys()
    head = (DEPLOY / "kubernetes.yaml").read_text("utf-8").partition("apiVersion")[0]
    assert named == set(re.findall(r"--from-file=(\w+)=", head))


def test_all_run_as_the_same_user_without_rights() -> None:
    assert f"USER {USER}:{USER}" in CONTAINERFILE
    assert (COMPOSE["user"], COMPOSE["read_only"], COMPOSE["cap_drop"]) == (f"{USER}:{USER}", True, ["ALL"])
    context = POD["securityContext"]
    assert (context["runAsUser"], context["fsGroup"], context["runAsNonRoot"]) == (USER, USER, True)
    for container in (CONTAINER, *POD["initContainers"]):
        own = container["securityContext"]
        assert (own["readOnlyRootFilesystem"], own["allowPrivilegeEscalation"]) == (True, False)
        assert own["capabilities"] == {"drop": ["ALL"]}


def test_each_mount_has_its_volume_and_each_file_is_there() -> None:
    volumes = {volume["name"]: volume for volume in POD["volumes"]}
    for container in (CONTAINER, *POD["initContainers"]):
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes.keys()
    assert volumes["graph"]["configMap"]["name"] == manifest("ConfigMap")["metadata"]["name"]
    assert (
        volumes["data"]["persistentVolumeClaim"]["claimName"] == manifest("PersistentVolumeClaim")["metadata"]["name"]
    )
    assert volumes["shm"]["emptyDir"]["medium"] == "Memory"
    for volume in COMPOSE["volumes"]:
        source = volume.partition(":")[0]
        assert not source.startswith(".") or (DEPLOY / source).is_file()
    build = COMPOSE["build"]
    context = (DEPLOY / build["context"]).resolve()
    assert (context, (context / build["dockerfile"]).is_file()) == (ROOT, True)


def test_the_image_takes_what_the_package_needs() -> None:
    """The context is closed but for these; the version of the package is built from them alone."""
    lines = (DEPLOY / "Containerfile.dockerignore").read_text("utf-8").splitlines()
    taken = {line[1:] for line in lines if line.startswith("!")}
    assert "*" in lines
    assert all((ROOT / name).exists() for name in taken)
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    links = {path.name for path in (ROOT / "src" / "camgraph").iterdir() if path.is_symlink()}
    files = re.findall(r'"([A-Z]+)"', re.findall(r"^license-files = \[(.*)\]", project, re.MULTILINE)[0])
    assert {*links, *files, "src", "docs", "README.md", "pyproject.toml"} <= taken


@pytest.mark.parametrize("name", ["Containerfile", "compose.yaml", "compose.cuda.yaml", "kubernetes.yaml"])
def test_images_are_named_without_a_registry(name: str) -> None:
    text = (DEPLOY / name).read_text("utf-8")
    images = re.findall(r"^\s*(?:FROM|image:) (\S+)", text, re.MULTILINE)
    assert images
    assert not [image for image in images if "." in image.partition("/")[0].partition(":")[0] or "/" in image]


def test_make_without_gpu_installs_the_small_onnx_runtime(tmp_path: Path) -> None:
    steps = subprocess.run(
        ["make", "-n", "setup", "GPU=none", f"VENV={tmp_path}/v"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "-r " in steps
    assert "--no-deps -e ." in steps
    assert "[serve" not in steps
    (script,) = re.findall(r"define SMALL\n(.*?)endef", (ROOT / "Makefile").read_text("utf-8"), re.DOTALL)
    wanted = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "onnxruntime>=" in wanted
    assert "onnxruntime-gpu" not in wanted
    assert "uvicorn" in wanted
