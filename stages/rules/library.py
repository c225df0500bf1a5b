"""The words and templates that come with camgraph: `words.yaml` and `actions.yaml`, which lie beside this file."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from pydantic import Field

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph.reading import validated
from camgraph.pipeline.graph.report import Report
from camgraph.pipeline.graph.yaml_source import load
from camgraph.pipeline.stage import Settings
from camgraph.stages.rules.rule_file import RuleFile, Templates, Words

WORDS, ACTIONS = "words.yaml", "actions.yaml"


class LibraryFile(Settings):
    """Words and templates without rules."""

    version: Literal[1] = Field(default=1, description="The version of this format")
    define: Words = Field(default={})
    templates: Templates = Field(default={})


@dataclass(frozen=True, slots=True)
class Library:
    """All that is shipped, by name."""

    words: Words
    templates: Templates


@functools.cache
def library() -> Library:
    """Read once. Raises GraphError if the files are wrong, which tests rule out."""
    words, actions = _read(WORDS), _read(ACTIONS)
    return Library({**words.define, **actions.define}, {**words.templates, **actions.templates})


def hiding(file: RuleFile) -> Iterator[str]:
    """In words, what of the library a file has its own of."""
    for kind, own, shipped in (
        ("word", file.define, library().words),
        ("action", file.templates, library().templates),
    ):
        for name in own:
            if name in shipped:
                yield f"`{name}` of this file is used instead of the {kind} `{name}` of the library"


def library_text(name: str) -> str:
    """The text of one of its files."""
    return files("camgraph.stages.rules").joinpath(name).read_text(encoding="utf-8")


def _read(name: str) -> LibraryFile:
    report = Report(load(library_text(name), name), error_id="rule-mistake")
    found = validated(LibraryFile, report.source.data, report)
    if found is None or report.problems:
        raise GraphError(report.problems)
    return found
