"""The call about the graph: what runs where, who sends to whom, and what the stages tell about themselves."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from camgraph.pipeline.monitoring.run_status import StageStatus
from camgraph.tools.service.run.run_link import NO_ANSWER, RunLink
from camgraph.tools.service.web.calls import Call, Gives
from camgraph.tools.service.web.thread_pools import ThreadPools
from camgraph.tools.service.web.withheld_paths import as_told_to

GraphEdge = TypedDict(
    "GraphEdge",
    {"from": str, "to": str, "port": str, "type": str, "policy": str, "depth": int, "inside_process": bool},
)
"""One arrow, from stage to stage. `port`: "" if the reader has one input alone. `policy`: what a full one does.
`depth`: messages of a camera that may wait. `inside_process`: a call, and no message."""


class GraphStage(TypedDict):
    """`processes`: those that have it; `facts`: what it reported once it ran, such as its `model` and `provider`."""

    name: str
    use: str
    is_source: bool
    batch_max: int
    threads: int
    processes: list[str]
    facts: dict[str, str | int | float]


class GraphAnswer(TypedDict):
    """The graph of the run, in the order in which frames go through it. It has no settings."""

    graph: str
    stages: list[GraphStage]
    edges: list[GraphEdge]


def graph_calls(run: RunLink, threads: ThreadPools) -> list[Call]:
    """See the module."""

    def whole() -> dict[str, Any]:
        graph, running = run.graph(), run.status().stages
        stages = [{**one, "facts": running.get(one["name"], StageStatus()).facts} for one in graph["stages"]]
        return {**graph, "stages": stages}

    async def answer(request: Request) -> Response:
        return JSONResponse(as_told_to(request, await threads.run.run(whole)))

    return [
        Call("GET", "/api/graph", "viewer", answer, "The stages and edges of the run, and which model runs where.",
             Gives(type=GraphAnswer), errors=NO_ANSWER),
    ]  # fmt: skip
