"""Literals in the metadata of models."""

from __future__ import annotations

import pytest

from camgraph.stages.vision.metadata_literal import MOST_CHARACTERS, metadata_literal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[640, 640]", [640, 640]),
        ("{0: 'person'}", {0: "person"}),
        ("", None),
        ("[", None),
        ("f(1)", None),
        ("(" * 9999, None),
    ],
)
def test_a_literal_or_nothing(text: str, value: object) -> None:
    assert metadata_literal({"key": text}, "key") == value
    assert metadata_literal({}, "key") is None


def test_what_would_take_gigabytes_to_read_is_not_read() -> None:
    """Eight megabytes of it took 4 GB, and minutes."""
    longest = "[" + "1," * ((MOST_CHARACTERS - 2) // 2) + "]"
    assert len(metadata_literal({"names": longest}, "names")) == (MOST_CHARACTERS - 2) // 2  # type: ignore[arg-type]
    assert metadata_literal({"names": longest[:-1] + "1,]"}, "names") is None
