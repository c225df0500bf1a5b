"""The call that tells the rates of the last hour, for the plots of the page."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from camgraph.pipeline.foreign_text import shown
from camgraph.tools.service.run.recent_rates import RateRing, RecentRates
from camgraph.tools.service.web.calls import Call, Gives, NotThere
from camgraph.tools.service.web.queries import CameraName, Parameter, query_of

_OF: dict[str, Parameter] = {"camera": CameraName("Of this camera alone; without it, of all cameras together.")}


def rate_calls(ring: RateRing) -> list[Call]:
    """The calls over the samples in `ring`."""

    async def recent(request: Request) -> Response:
        camera = query_of(request, _OF)["camera"]
        try:
            return JSONResponse(dict(ring.recent(camera)))
        except LookupError:
            why = f"nothing is known of the last hour of a camera {shown(str(camera))[:60]}"
            raise NotThere(why, error_id="name-unknown") from None

    return [
        Call(
            "GET",
            "/api/recent",
            "viewer",
            recent,
            "Frames a second, drops and ages of frames in the last hour, every 5 s.",
            Gives(type=RecentRates),
            _OF,
            errors={404: "nothing is known of such a camera"},
        )
    ]
