"""What a camera may be called, and what stands for its name in paths and addresses."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.system.names import (
    MAX_CAMERA_BYTES,
    MAX_NAME,
    ascii_form,
    is_camera_name,
    is_name,
    nearest_camera_name,
    nfc,
    twin_of,
)

letters = st.characters(categories=["L", "M", "Nd"]) | st.sampled_from("_-")
camera_names = st.text(letters, min_size=1, max_size=MAX_NAME).map(nfc).filter(is_camera_name)


@given(camera_names)
def test_the_form_is_a_name_of_ascii(name: str) -> None:
    assert is_name(ascii_form(name))
    assert ascii_form(unicodedata.normalize("NFD", name)) == ascii_form(name) or name.isascii()
    assert (ascii_form(name) == name) is name.isascii()


@given(st.lists(camera_names, unique=True, max_size=12))
def test_cameras_share_no_form(names: list[str]) -> None:
    assert len({ascii_form(name) for name in names}) == len(names)
    assert all(twin_of(name, names) is None for name in names)


@given(st.text(max_size=3 * MAX_NAME))
def test_the_nearest_name_is_a_name_or_nothing(text: str) -> None:
    near = nearest_camera_name(text)
    assert near == "" or is_camera_name(near)
    if is_camera_name(text) and not text.endswith("-"):
        assert near == text


@given(st.text(min_size=1, max_size=MAX_NAME))
def test_a_name_is_made_of_letters_marks_and_digits(text: str) -> None:
    categories = [unicodedata.category(letter) for letter in text]
    allowed = all(
        kind[0] in "LM" or kind == "Nd" or letter in "_-" for kind, letter in zip(categories, text, strict=True)
    )
    begins = text[0] != "-" and categories[0][0] != "M"
    fits = allowed and begins and text == nfc(text) and len(text.encode()) <= MAX_CAMERA_BYTES
    assert is_camera_name(text) is fits


@given(st.text(st.sampled_from("aZ09_-.é \u0308"), max_size=MAX_NAME + 3))
def test_what_may_name_a_stage_may_name_a_camera(text: str) -> None:
    assert is_camera_name(text) or not is_name(text)


@pytest.mark.parametrize(
    "name", ["", "-a", "a b", "a.b", "a\n", "a\u200d", "\u0308a", "Su\u0308d", "½", "\ud800", "入" * 41]
)
def test_no_camera_is_called_so(name: str) -> None:
    assert not is_camera_name(name)


def test_the_other_of_two_with_one_form_is_found() -> None:
    assert twin_of(ascii_form("Süd"), ["Nord", "Süd"]) == "Süd"
    assert twin_of("Süd", ["Sud", "Süd"]) is None
