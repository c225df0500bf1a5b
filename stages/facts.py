"""Facts that stages tell each other while a graph is planned: made in `Stage.describe`, read in `Stage.follow`.

A stage of another package may tell these too (a preprocessor of its own says `picture`), and facts of its own names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict


class PictureFact(TypedDict):
    """The pictures that a model is handed."""

    size: tuple[int, int] | Literal["auto", "native"]
    """Width and height in pixels, or how they follow from the frame; of windows of keypoints the joints and steps."""
    keypoints: NotRequired[bool]
    """True for windows of keypoints."""


class ModelFact(TypedDict, total=False):
    """The model, as events name it."""

    name: str
    sha256: str
    provider: str
    """Only if there is no choice: of several, the best that works is taken when the model is opened."""


class ModelFileFact(TypedDict):
    """The path of the model, for stages that read its names and shapes."""

    path: str
    """As it stands in the graph."""
    custom_ops: Sequence[str]
    """Libraries with operators of its own."""


class SkeletonFact(TypedDict):
    """The keypoints of the people that a model finds."""

    name: str
    keypoints: int


class RuleNamesFact(TypedDict):
    """What filters of events may name, and the time zone of the rules, if they have one."""

    rules: Sequence[str]
    actions: Sequence[str]
    """Of rules, and the names of counters."""
    time_zone: str | None


class RulesFact(TypedDict):
    """The rules that judge the tracks."""

    file: str | None
    text: str
    """As a rules file has them."""
    names: RuleNamesFact | None
    """None for a text that is no rules file: the stage `rules` reports what is wrong."""
    heads: bool
    """Whether the events tell where all heads are."""
    clocks: NotRequired[Mapping[str, str]]
    """Camera -> whose its times are, where this differs from its frames' clock."""


class FootageFact(TypedDict):
    """Where pictures and clips of incidents are kept."""

    folder: str
    """As it stands in the graph: events name files by it, as `data.snapshot` and `data.clip`."""
    clips: bool
    look: str
    """Of the pictures."""


class Facts(TypedDict, total=False):
    """All facts of camgraph's own stages."""

    picture: PictureFact
    """Of `preprocess`, `crop` and `keypoint_windows`: read by `infer`."""
    model: ModelFact
    """Of `infer`: read by `rules`, for the events."""
    model_file: ModelFileFact
    """Of `infer` with a model in a file: read by the stages that decode its outputs."""
    model_server: Mapping[str, Any]
    """Of `infer` with a model on a server: the server's settings as a graph file has them."""
    model_declared: Mapping[str, Any]
    """Declared by `infer`: everything that the graph says of the model in addition to the model's own metadata."""
    scores: Mapping[str, float]
    """Of `decode`: the `ScoreRange` of its people by name, read by `track` and `crop`."""
    skeleton: SkeletonFact
    """Of `decode` and `add_keypoints`, if known before the run: read by `rules`."""
    labels: Sequence[str] | None
    """Of `classify`: the names of its classes, None if they are not known before the run; read by `rules`."""
    rules: RulesFact
    """Declared by `rules`: read by sinks, for the names that their filters may use, and to show zones and lines."""
    footage: FootageFact
    """Declared by `sink_footage`: read by sinks beside it that send its pictures along."""
