"""The table of all calls of the service, and whether an answer is what the table says."""

from __future__ import annotations

from pathlib import Path

import httpx
from pydantic import TypeAdapter
from structlog import get_logger

from camgraph.tools.service.history.event_calls import event_calls
from camgraph.tools.service.history.event_history import EventHistory
from camgraph.tools.service.history.incident_calls import incident_calls
from camgraph.tools.service.live.live_calls import live_calls
from camgraph.tools.service.live.picture_link import PictureProcess
from camgraph.tools.service.model.infer_calls import infer_calls
from camgraph.tools.service.run.camera_calls import camera_calls
from camgraph.tools.service.run.graph_calls import graph_calls
from camgraph.tools.service.run.health_calls import health_calls
from camgraph.tools.service.run.rate_calls import rate_calls
from camgraph.tools.service.run.recent_rates import RateRing
from camgraph.tools.service.run.run_link import RunLink
from camgraph.tools.service.shapes.shape_calls import shape_calls
from camgraph.tools.service.web.access import Access
from camgraph.tools.service.web.calls import Call
from camgraph.tools.service.web.page_calls import page_calls
from camgraph.tools.service.web.thread_pools import ThreadPools


def every_call() -> list[Call]:
    """Of a service without a run."""
    run, history = RunLink("none"), EventHistory(Path("/none/history"), get_logger(), keep_s=1e6, keep_bytes=1e8)
    threads = ThreadPools()
    footage = incident_calls([], history, threads, lambda: 0.0)
    shown = [
        *health_calls(run, threads),
        *rate_calls(RateRing()),
        *camera_calls(run, threads),
        *graph_calls(run, threads),
        *infer_calls(run, threads.model),
        *live_calls(run, threads, PictureProcess(), video=True),
        *shape_calls(run, threads, Path("/none"), {}),
    ]
    return [*shown, *footage, *event_calls(history, threads.history), *page_calls(Access())]


def assert_as_described(method: str, path: str, answer: httpx.Response) -> None:
    """`path`: of the call, with names in braces. It must have all that is promised, and nothing more."""
    [call] = [one for one in every_call() if (one.method, one.path) == (method, path)]
    assert answer.status_code == call.gives.status, answer.text
    assert answer.headers["content-type"].partition(";")[0] == call.gives.media.partition(";")[0]
    if call.gives.type is not None:
        described = TypeAdapter(call.gives.type)
        read = described.validate_json(answer.content, strict=True)
        assert described.dump_python(read, mode="json", by_alias=True) == answer.json(), path
