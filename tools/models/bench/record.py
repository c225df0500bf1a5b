"""A measured run of `camgraph model bench`, as it is saved and read again."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from camgraph.pipeline.errors import UserError
from camgraph.stages.people.inference.engines.engine import ProviderName
from camgraph.tools.models import saved

Positive = Field(gt=0)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Machine(_Part):
    """The machine of a measurement. ``load``: the load average of a minute before, and the highest one meanwhile.

    ``other_cores``: the cores that foreign processes took; None if the system does not report it.
    """

    cores: int = Field(gt=0)
    processor: str
    system: str
    python: str
    onnxruntime: str
    offered: tuple[str, ...]
    load: tuple[float, float] | None = None
    other_cores: float | None = None


class Measured(_Part):
    """One configuration. ``frames_per_s``: a value a round; times of a run in ms; ``peak_mb`` of all its processes."""

    provider: ProviderName
    runs_on: str
    batch: int = Field(gt=0)
    workers: int = Field(gt=0)
    threads: int = Field(gt=0)
    intra_op: int = Field(gt=0)
    frames_per_s: tuple[float, ...] = Field(min_length=1)
    run_p50_ms: float = Field(gt=0)
    run_p99_ms: float = Field(gt=0)
    open_s: float = Field(ge=0)
    peak_mb: float | None

    @property
    def name(self) -> str:
        """As it stands in tables: with ``workers x threads x intra_op``."""
        return f"{self.provider}, batch {self.batch}, {self.workers} x {self.threads} x {self.intra_op}"

    @property
    def median(self) -> float:
        """Frames a second."""
        return median(self.frames_per_s)


class LeftOut(_Part):
    """A requested configuration that could not be measured."""

    what: str
    why: str


class Record(_Part):
    """A whole run. ``size``: (width, height) of the pictures; ``pictures``: their origin."""

    kind: Literal["camgraph model bench"] = "camgraph model bench"
    version: Literal[1] = 1
    at: str
    model: str
    sha256: str
    size: tuple[int, int]
    pictures: str
    precision: str
    interrupted: bool
    machine: Machine
    measured: tuple[Measured, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def best(self) -> Measured:
        """The one with most frames a second; there must be one."""
        return max(self.measured, key=lambda one: one.median)


def save(record: Record, path: Path) -> None:
    """Raises UserError if it cannot be written."""
    saved.save(path, record.model_dump_json(indent=1) + "\n")


def read(path: Path) -> Record:
    """Raises UserError if it is no saved run."""
    try:
        return Record.model_validate_json(path.read_text())
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}", error_id="cannot-read") from None
    except (ValidationError, UnicodeDecodeError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": "it is no text"}
        place = ".".join(map(str, first["loc"]))
        raise UserError(
            f"{path}: expected what `camgraph model bench --json` writes; "
            f"{place + ': ' if place else ''}{first['msg']}",
            error_id="file-kind",
        ) from None
