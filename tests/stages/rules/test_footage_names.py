"""The names of an incident's files: from the incident alone, apart for each, and safe whatever things are called."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.system.names import is_camera_name
from camgraph.stages.rules.footage_names import names_of

INCIDENT = "1f00ba7e" + 24 * "0"
AT_NS = 1_795_381_391_123_000_000


def test_they_say_where_when_and_what() -> None:
    names = names_of("footage", "front", "fall", INCIDENT, AT_NS)
    assert names.snapshot == "footage/front/2026-11-22/21-03-11_fall_1f00ba7e.jpg"
    assert names.clip == names.snapshot.replace(".jpg", ".mp4")
    assert names.record == names.snapshot.replace(".jpg", ".json")


@given(st.text(min_size=1, max_size=60), st.text(max_size=80), st.integers(0, 4_000_000_000))
def test_any_camera_and_action_stay_below_the_folder(camera: str, action: str, second: int) -> None:
    if not is_camera_name(camera):
        camera = "c"
    path = PurePosixPath(names_of("footage", camera, action, INCIDENT, second * 1_000_000_000).clip)
    assert len(path.parts) == 4
    assert path.parts[0] == "footage"
    assert not any(part in (".", "..") or part.startswith(".") for part in path.parts)
    assert len(path.name.encode()) < 120
    assert path.name.isascii()


def test_two_actions_never_share_a_name() -> None:
    assert names_of("f", "c", "fällt", INCIDENT, AT_NS) != names_of("f", "c", "fallt", INCIDENT, AT_NS)
    assert names_of("f", "c", "a/b", INCIDENT, AT_NS) != names_of("f", "c", "a_b", INCIDENT, AT_NS)


@pytest.mark.parametrize("incident", ["", "../../../../etc/passwd", "0" * 7, "ABCDEF0123"])
def test_only_a_hash_names_an_incident(incident: str) -> None:
    with pytest.raises(ValueError, match="expected the hash of an incident"):
        names_of("f", "c", "a", incident, AT_NS)
