"""Serves the run over HTTP: a page to look at, an API, metrics for Prometheus, and probes for health.

    page: {use: serve, from: events}

Open http://127.0.0.1:8350 in a browser of this machine. To reach it from elsewhere, set an `address`, `tokens` for
those who may look, and a `certificate`. It has a process of its own: if that dies, nothing else notices, it is started
again, and events wait in the outbox meanwhile.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from camgraph.pipeline.errors import EnvironmentProblem, Unavailable
from camgraph.pipeline.messages import Message
from camgraph.pipeline.stage import Context, Counts, FrameSize, SettingProblems, Settings, Stage, Upstream
from camgraph.pipeline.system.happy_eyeballs import host_and_port, is_this_machine
from camgraph.pipeline.system.paths import resolve, resolve_output, resolve_output_path, why_no_output
from camgraph.pipeline.system.redaction import hide
from camgraph.stages.messages import Event, Frame
from camgraph.stages.sinks.delivery.footage_files import FootageSettings, footage_beside
from camgraph.tools.service.history.event_history import EventHistory

if TYPE_CHECKING:
    from camgraph.tools.service.live.picture_link import PictureProcess
    from camgraph.tools.service.run.recent_rates import RateSampler
    from camgraph.tools.service.web.http_server import HttpServer
    from camgraph.tools.service.web.thread_pools import ThreadPools

PORT = 8350
_DAY_S = 86_400.0
_SQLITE, _OF_SQLITE = b"SQLite format 3\0", (".sqlite", ".sqlite3", ".db")
_HIDING = ("skeleton_only", "blurred_faces")
_NEEDED = ("starlette", "uvicorn", "prometheus_client", "PIL", "python_multipart")
_EXPECTED = "expected HOST:PORT, such as 127.0.0.1:8350, or 0.0.0.0:8350 for all networks of this machine"


class ServiceAddress(NamedTuple):
    """Where the service listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return host_and_port(self.host, self.port)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_this_machine(self.host)


def service_address(text: str) -> ServiceAddress:
    """Parse it. Raises ValueError."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(_EXPECTED) from None
    if not host or port is None or parts.netloc != text or "@" in text:
        raise ValueError(_EXPECTED)
    return ServiceAddress(host, port)


def _is_address(text: str) -> str:
    service_address(text)
    return text


def _is_network(text: str) -> str:
    ipaddress.ip_network(text, strict=False)
    return text


class TokenSettings(Settings):
    """Somebody who may ask."""

    name: str = Field(
        min_length=1, max_length=60, description="Whose it is; the log and the labels of incidents show it"
    )
    token: str = Field(
        min_length=16, max_length=200, description="At least 16 letters. Write `${secret:NAME}`", repr=False
    )
    role: Literal["viewer", "operator", "admin"] = Field(
        "viewer",
        description="A viewer looks. An operator also pauses cameras and labels incidents. An admin also adds and "
        "removes cameras",
    )


class ServeSettings(FootageSettings):
    """Where it listens, and who may ask."""

    address: Annotated[str, AfterValidator(_is_address)] = Field(
        f"127.0.0.1:{PORT}", description="HOST:PORT. Beyond this machine, `tokens` are needed"
    )
    tokens: list[TokenSettings] = Field(
        [], description="Who may ask; without any, everybody who can reach the address may do everything"
    )
    certificate: str | None = Field(None, description="PEM file with the chain of certificates, for https; with `key`")
    key: str | None = Field(None, description="PEM file with its private key")
    hosts: list[str] = Field(
        [], description="Names under which browsers reach it, beside localhost: without `tokens`, or through a proxy"
    )

    proxies: list[Annotated[str, AfterValidator(_is_network)]] = Field(
        [], description="Addresses or networks of proxies in front, which are believed who it is that asks"
    )
    video: bool | None = Field(
        None, description="Live video can be watched; by default unless a stage `sink_footage` hides faces or people"
    )
    rules_files: dict[str, str] | None = Field(
        None,
        description="Stage -> its file of rules, filled in automatically; empty if its rules stand in the graph file",
    )
    history: str = Field(
        "history.sqlite",
        min_length=1,
        description="The file of past events, relative to the graph file; two graphs need two files",
    )
    keep_days: float = Field(30, gt=0, le=3650, description="Past events go so many days after they came")
    keep_mb: float = Field(500, ge=1, description="If the file is larger than this many MB, the oldest events go")

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("`certificate` and `key` go together: expected both or none")
        values = [token.token for token in self.tokens]
        if len(set(values)) != len(values):
            raise ValueError("two of `tokens` are the same: each needs one of its own")
        return self

    @property
    def place(self) -> ServiceAddress:
        return service_address(self.address)


def _why_no_history(path: Path) -> str:
    """A damaged history is set aside for a new one; this must happen to no file that never was one."""
    try:
        with path.open("rb") as file:
            begins = file.read(len(_SQLITE))
    except OSError:  # there is none yet, or the run says what is wrong
        return ""
    if not begins or begins == _SQLITE or path.suffix in _OF_SQLITE:
        return ""
    return f"{path} is a file of something else: name one that is not there yet, such as history.sqlite"


class Serve(Stage[ServeSettings]):
    """Events -> a page, an API and metrics, for people and programs that ask."""

    settings_type = ServeSettings
    inputs = Event
    outputs = ()
    counts: ClassVar[Counts] = {"written": "Events that the service has in its history."}
    own_thread = True
    gives_way = True
    awaited = False

    def __init__(self, settings: ServeSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._server: HttpServer | None = None
        self._history: EventHistory | None = None
        self._pictures: PictureProcess | None = None
        self._sampler: RateSampler | None = None
        self._threads: ThreadPools | None = None

    @classmethod
    def check(cls, settings: ServeSettings, base_folder: Path) -> SettingProblems:
        if not all(map(find_spec, _NEEDED)):
            yield (), "the service needs packages that are not installed: `pip install 'camgraph[serve]'`"
        if not settings.tokens and not settings.place.is_local:
            yield (
                ("address",),
                "beyond this machine, everybody could look through the cameras: set `tokens`, or choose 127.0.0.1",
            )
        why = why_no_output(settings.history, base_folder) or _why_no_history(
            resolve_output_path(settings.history, base_folder)
        )
        if why:
            yield ("history",), why
        for key in ("certificate", "key"):
            name = getattr(settings, key)
            if name is not None and not resolve(name, base_folder).is_file():
                yield (key,), f"no such file: {name}"

    @classmethod
    def remarks(
        cls, settings: ServeSettings, base_folder: Path, cameras: Mapping[str, FrameSize | None]
    ) -> Iterable[str]:
        if not settings.place.is_local and settings.certificate is None:
            yield (
                "without `certificate` and `key`, tokens and pictures cross the network unencrypted: set them, or put "
                "a proxy with https in front"
            )

    @classmethod
    def follow(cls, settings: ServeSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        hides = any(facts["footage"]["look"] in _HIDING for facts in upstream.beside.values() if "footage" in facts)
        video = {"video": not hides} if settings.video is None else {}
        files = {name: facts["rules"]["file"] or "" for name, facts in upstream.stages.items() if "rules" in facts}
        rules = {"rules_files": files} if settings.rules_files is None else {}
        return {**footage_beside(settings, upstream), **video, **rules}

    @classmethod
    def gives_away(cls, settings: ServeSettings) -> Collection[type[Message]]:
        """Live video is made of packets."""
        return (Frame,) if settings.video else ()

    @classmethod
    def written_folders(cls, settings: ServeSettings, base_folder: Path) -> Iterable[Path]:
        """That of the history: SQLite writes more files beside it."""
        yield resolve_output_path(settings.history, base_folder).parent

    def open(self) -> None:
        """Raises EnvironmentProblem if the address cannot be had."""
        from camgraph.tools.service.web.http_server import HttpServer, bound  # noqa: PLC0415 - an extra

        settings = self.settings
        path = resolve_output(settings.history, self.context.base_folder)
        keep_s, keep_bytes = settings.keep_days * _DAY_S, settings.keep_mb * 1e6
        self._history = EventHistory(path, self.context.log, keep_s=keep_s, keep_bytes=keep_bytes)
        try:
            self._history.open()
        except Unavailable as error:  # the service tells how the run is all the same, and events wait
            self.context.log.warning("history_not_opened", why=str(error))
        self.context.wrote(path)
        hide(token.token for token in settings.tokens)
        listener = bound(*settings.place)
        certificate, key = self._file(settings.certificate), self._file(settings.key)
        self._server = HttpServer(
            self._app(),
            listener,
            self.context.log,
            certificate=certificate,
            key=key,
            proxies=settings.proxies,
            stuck=self._end_process,
        )
        self._server.start()
        if self._sampler is not None:
            self._sampler.start()
        self.context.log.info("serving", address=f"{'https' if settings.certificate else 'http'}://{settings.place}")

    def _app(self) -> Any:
        from camgraph.tools.service.history.event_calls import event_calls  # noqa: PLC0415
        from camgraph.tools.service.history.incident_calls import incident_calls  # noqa: PLC0415
        from camgraph.tools.service.live.live_calls import live_calls  # noqa: PLC0415
        from camgraph.tools.service.live.picture_link import PictureProcess  # noqa: PLC0415
        from camgraph.tools.service.model.infer_calls import infer_calls  # noqa: PLC0415
        from camgraph.tools.service.run.camera_calls import camera_calls  # noqa: PLC0415
        from camgraph.tools.service.run.graph_calls import graph_calls  # noqa: PLC0415
        from camgraph.tools.service.run.health_calls import health_calls  # noqa: PLC0415
        from camgraph.tools.service.run.rate_calls import rate_calls  # noqa: PLC0415
        from camgraph.tools.service.run.recent_rates import RateRing, RateSampler  # noqa: PLC0415
        from camgraph.tools.service.run.run_link import RunLink  # noqa: PLC0415
        from camgraph.tools.service.shapes.shape_calls import shape_calls  # noqa: PLC0415
        from camgraph.tools.service.web.access import Access, Token  # noqa: PLC0415 - an extra
        from camgraph.tools.service.web.app import build_app  # noqa: PLC0415
        from camgraph.tools.service.web.page_calls import page_calls  # noqa: PLC0415
        from camgraph.tools.service.web.thread_pools import ThreadPools  # noqa: PLC0415

        run = RunLink(self.context.graph)
        tokens = [Token(one.name, one.token, one.role) for one in self.settings.tokens]
        folders = [resolve(folder, self.context.base_folder) for folder in self.settings.footage_folders or ()]
        assert self._history is not None
        self._pictures = PictureProcess()
        access = Access(tokens, self.settings.hosts, service=self.context.graph)
        rates = RateRing()
        self._sampler = RateSampler(run.status, rates)
        threads = self._threads = ThreadPools()
        calls = [
            *health_calls(run, threads),
            *rate_calls(rates),
            *camera_calls(run, threads),
            *graph_calls(run, threads),
            *infer_calls(run, threads.model),
            *live_calls(run, threads, self._pictures, video=bool(self.settings.video)),
            *shape_calls(run, threads, self.context.base_folder, self.settings.rules_files or {}),
            *incident_calls(folders, self._history, threads, run.begun_s),
            *event_calls(self._history, threads.history),
        ]
        calls += page_calls(access)
        return build_app(calls, access, self.context.log)

    def _end_process(self) -> None:
        """Events that were not finished come again to the next one."""
        self.context.log.error("service_stuck", doing="its process ends, and is started again")
        os._exit(1)

    def _file(self, name: str | None) -> Path | None:
        return None if name is None else resolve(name, self.context.base_folder)

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        """Raises Unavailable on a full disk, and EnvironmentProblem if its server has died: it is restarted then."""
        if self._server is not None and not self._server.is_alive:
            raise EnvironmentProblem("the HTTP server has ended", error_id="service-ended")
        assert self._history is not None
        self._history.add(items)
        for event in items:
            self.context.count("written", event.stamp.camera)
        return ()

    def close(self) -> None:
        if self._history is not None:
            self._history.end()
        if self._sampler is not None:
            self._sampler.stop()
        if self._server is not None:
            self._server.stop()
        if self._pictures is not None:
            self._pictures.close()
        if self._threads is not None:
            self._threads.close()
        if self._history is not None:
            self._history.close()
