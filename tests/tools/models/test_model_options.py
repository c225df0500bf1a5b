"""Numbers that a command refuses before it does anything."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from camgraph.tools.cli import main

MISTAKES = [
    ("bench", "--open-seconds", "-1"),
    ("bench", "--open-seconds", "nan"),
    ("bench", "--open-seconds", "0"),
    ("bench", "--seconds", "nan"),
    ("bench", "--price-per-hour", "inf"),
    ("bench", "--price-per-hour", "nan"),
    ("profile", "--seconds", "nan"),
    ("profile", "--seconds", "-1"),
    ("compare", "--least", "nan"),
    ("compare", "--most-lost", "nan"),
]


@pytest.mark.parametrize(("command", "option", "value"), MISTAKES)
def test_numbers_that_are_none_are_refused_by_their_option(command: str, option: str, value: str) -> None:
    result = CliRunner().invoke(main, ["model", command, "no.onnx", "out.onnx", option, value])
    assert result.exit_code == 2
    assert f"Invalid value for '{option}'" in result.output
