"""The unit of systemd for one graph: a sandbox with the graph's own folders in it. Pure.

The first line of a unit holds a digest of the rest, so that nobody's changes are overwritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from camgraph.pipeline.errors import UserError

ACCOUNT = "camgraph"
MARK = "# Written by `camgraph service install`; change it by `systemctl edit`. Digest: "
_HAS_STEPS = 254
"""The version of systemd that knows RestartSteps."""


@dataclass(frozen=True, slots=True)
class UnitSettings:
    """`program`: the words that start camgraph. `writes`: the folders that the graph writes.

    `secrets`: name of a credential -> the file that root reads it from. `jit`: machine code is made while it runs
    (OpenVINO, CUDA). `sees_home`: something that it needs is in a home folder. `systemd`: the version.
    """

    name: str
    graph: Path
    program: tuple[str, ...]
    user: str = ACCOUNT
    writes: tuple[Path, ...] = ()
    env_files: tuple[Path, ...] = ()
    secrets: Mapping[str, Path] = field(default_factory=dict)
    gpu: bool = False
    video_devices: bool = False
    jit: bool = False
    sees_home: bool = False
    live: bool = True
    can_reload: bool = True
    systemd: int = 0


def unit_name(name: str) -> str:
    """The name of the unit, also of its file."""
    return f"camgraph-{name}.service"


def unit_text(settings: UnitSettings) -> str:
    """The whole file. Raises UserError for a path that no unit can name."""
    body = "\n".join(_lines(settings)) + "\n"
    return f"{MARK}{_digest(body)}\n{body}"


def is_ours(text: str) -> bool:
    """Whether a unit is as `unit_text` made it."""
    first, _, body = text.partition("\n")
    return first == f"{MARK}{_digest(body)}"


def _digest(body: str) -> str:
    return sha256(body.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _lines(settings: UnitSettings) -> Iterator[str]:
    yield from (
        "[Unit]",
        f"Description=camgraph: {settings.name}",
        "Wants=network-online.target",
        "# Cameras that are not there yet are retried for ever; the order only saves the first failures.",
        "After=network-online.target time-sync.target",
    )
    if settings.writes:
        yield f"RequiresMountsFor={' '.join(map(_path, settings.writes))}"
    yield from ("StartLimitIntervalSec=0", "", "[Service]", "Type=notify")
    yield f"ExecStart={' '.join(_words(settings))}"
    if settings.can_reload:  # to another run, SIGHUP means to stop
        yield "ExecReload=kill -HUP $MAINPID"
    yield from _restart(settings)
    yield from (
        "# Only the run itself is told to stop: it ends its processes in order, and asks for more time if need be.",
        "KillMode=mixed",
        "TimeoutStartSec=120",
        "TimeoutStopSec=60",
        "WatchdogSec=60",
        "# The run restarts a process that the kernel killed for its memory.",
        "OOMPolicy=continue",
        "LimitNOFILE=65536",
        "",
        f"User={settings.user}",
        "UMask=0027",
        "StateDirectory=camgraph",
        "StateDirectoryMode=0750",
        "CacheDirectory=camgraph",
        f"RuntimeDirectory=camgraph-{settings.name}",
        "RuntimeDirectoryMode=0700",
    )
    yield from (f"LoadCredential={_item(f'{name}:{file}')}" for name, file in _credentials(settings).items())
    yield ""
    yield from _sandbox(settings)
    yield from ("", "[Install]", "WantedBy=multi-user.target")


def _restart(settings: UnitSettings) -> Iterator[str]:
    if not settings.live:
        yield "# A graph of files ends by itself; after a failure somebody should look."
        yield "Restart=no"
        return
    yield "Restart=on-failure"
    if settings.systemd >= _HAS_STEPS:
        yield from ("RestartSec=2", "RestartSteps=6", "RestartMaxDelaySec=120")
    else:
        yield "RestartSec=15"


def _sandbox(settings: UnitSettings) -> Iterator[str]:
    yield "ProtectSystem=strict"
    yield from (f"ReadWritePaths={_item(f'-{folder}')}" for folder in settings.writes)
    yield f"ProtectHome={'read-only' if settings.sees_home else 'yes'}"
    yield from (
        "PrivateTmp=yes",
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=",
        "AmbientCapabilities=",
        "RestrictSUIDSGID=yes",
        "LockPersonality=yes",
        "ProtectProc=invisible",
        "ProtectClock=yes",
        "ProtectHostname=yes",
        "ProtectKernelLogs=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelTunables=yes",
        "ProtectControlGroups=yes",
        "RestrictNamespaces=yes",
        "RestrictRealtime=yes",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
        "SystemCallArchitectures=native",
        "SystemCallFilter=@system-service",
        "SystemCallFilter=~@privileged",
        "SystemCallErrorNumber=EPERM",
    )
    yield from _devices(settings)
    if settings.jit or settings.gpu:
        yield "# OpenVINO and CUDA make machine code while they run, so MemoryDenyWriteExecute would break them."
    else:
        yield "MemoryDenyWriteExecute=yes"


def _devices(settings: UnitSettings) -> Iterator[str]:
    if not settings.gpu and not settings.video_devices:
        yield "PrivateDevices=yes"
        return
    yield "DevicePolicy=closed"
    if settings.gpu:
        yield from ("DeviceAllow=char-nvidia* rw", "DeviceAllow=char-drm rw")
    if settings.video_devices:
        yield "DeviceAllow=char-video4linux rw"
    groups = [*(["render"] if settings.gpu else []), "video"]
    yield f"SupplementaryGroups={' '.join(groups)}"


def _words(settings: UnitSettings) -> Iterator[str]:
    yield from map(_word, (*settings.program, "run", str(settings.graph), "--name", settings.name))
    for credential in _env_credentials(settings):
        yield from ("--env-file", f"${{CREDENTIALS_DIRECTORY}}/{credential}")


def _env_credentials(settings: UnitSettings) -> dict[str, Path]:
    return {f"env-file-{number}": file for number, file in enumerate(settings.env_files, 1)}


def _credentials(settings: UnitSettings) -> dict[str, Path]:
    return {**settings.secrets, **_env_credentials(settings)}


def _word(text: str) -> str:
    """A word of ExecStart; `$` would begin a variable there."""
    return _item(text).replace("$", "$$")


def _item(text: str) -> str:
    """A word in a list of words; `%` would begin a specifier."""
    if not text.isprintable():
        raise UserError(
            f"{text!r}: a unit of systemd cannot name it; expected a path of printable characters",
            error_id="service-unit",
        )
    doubled = text.replace("%", "%%")
    if not set(" \"'\\;").intersection(doubled):
        return doubled
    escaped = doubled.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _path(path: Path) -> str:
    return _item(str(path))
