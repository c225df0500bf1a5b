"""Graphs of counting stages, as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph import Graph, parse_graph

Parse = Callable[..., Graph]


@pytest.fixture
def parse(tmp_path: Path) -> Parse:
    """Checks and completes a graph that is written in the test."""

    def parsed(text: str, environ: Mapping[str, str] | None = None, **options: str) -> Graph:
        return parse_graph(dedent(text), "g.yaml", base_folder=tmp_path, environ=environ or {}, **options)

    return parsed


@pytest.fixture
def mistakes(parse: Parse) -> Callable[..., list[str]]:
    """What is wrong with a graph, one `line:column: text` each; empty if nothing is."""

    def found(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
        try:
            parse(text, environ)
        except GraphError as error:
            return [str(problem).removeprefix("g.yaml:") for problem in error.problems]
        return []

    return found
