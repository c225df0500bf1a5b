from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.drawing import LabelPlaces, Plate

corner = st.floats(-1e6, 1e6)


@given(corners=st.lists(st.tuples(corner, corner), min_size=1, max_size=12))
def test_labels_stay_inside_and_few_of_them_apart(corners: list[tuple[float, float]]) -> None:
    """Twelve labels at one place have room in six heights above it and below it."""
    places = LabelPlaces(400, 400)
    plates = [places.take(x, y, 60, 15) for x, y in corners]
    for plate in plates:
        assert plate.left >= 0
        assert plate.top >= 0
        assert plate.right <= 400
        assert plate.bottom <= 400
    if len(corners) <= 6:
        assert not any(one.meets(other) for one, other in combinations(plates, 2))


def test_a_label_without_room_stands_where_it_belongs() -> None:
    places = LabelPlaces(100, 100, [Plate(0, 0, 100, 100)])
    assert places.take(20, 30, 40, 10) == Plate(20, 30, 60, 40)


def test_a_label_larger_than_the_picture_begins_at_its_edge() -> None:
    assert LabelPlaces(30, 8).take(5, 5, 60, 15) == Plate(0, 0, 60, 15)
