"""Names as levels of topics: safe for every broker, and of two cameras never the same."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.system.names import is_camera_name, nfc
from camgraph.stages.sinks.delivery.mqtt.mqtt_topics import Topics, level

CAMERA_NAMES = st.text(st.characters(categories=["L", "M", "Nd"], include_characters="_-"), min_size=1, max_size=40)


@given(CAMERA_NAMES.map(nfc).filter(is_camera_name))
def test_the_name_of_a_camera_is_its_level_whatever_its_script(name: str) -> None:
    assert level(name) == name or name in ("state", "snapshot", "availability")


@pytest.mark.parametrize(("one", "other"), [("माला", "मेला"), ("ห้องนั่ง", "หองนง"), ("Süd", "Sud")])
def test_cameras_that_differ_in_marks_share_no_topic(one: str, other: str) -> None:
    assert Topics("p").state(one) != Topics("p").state(other)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("people talk", "people_talk"), ("a/+#$\0b", "a_b"), ("state", "state_"), ("x²", "x²")],
)
def test_levels(name: str, wanted: str) -> None:
    assert level(name) == wanted


@given(st.text())
def test_no_text_means_anything_in_a_topic(text: str) -> None:
    found = level(text)
    assert len(found) <= 201
    assert not set(found) & set("+#/$*>\0 ")
    assert all(letter in "_.-" or unicodedata.category(letter)[0] in "LMN" for letter in found)


@given(st.text(st.characters(categories=["L", "N", "P", "Z", "S"]), max_size=50))
def test_levels_without_marks_are_those_of_before(text: str) -> None:
    plain = re.sub(r"[^\w.-]+", "_", text)
    assert level(text) in (plain, f"{plain}_")
