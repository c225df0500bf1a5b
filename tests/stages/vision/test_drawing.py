from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.drawing import (
    ALARM_COLOUR,
    SHAPE_COLOUR,
    SIDE_COLOURS,
    Trail,
    bone_side,
    draw_box,
    draw_caption,
    draw_label,
    draw_lines,
    draw_people,
    draw_reasons,
    draw_skeleton,
    draw_trails,
    draw_zones,
    free_places,
    id_colour,
)
from camgraph.stages.vision.skeleton import COCO_17_BONES

GREY = 90


def blank(width: int = 320, height: int = 240) -> np.ndarray:
    return np.full((height, width, 3), GREY, np.uint8)


def touched(picture: np.ndarray) -> np.ndarray:
    """Where something was drawn: (H, W) bool."""
    return (picture != GREY).any(axis=2)


def standing(confidence: float = 0.9) -> np.ndarray:
    """A person (1, 17, 3) that faces the camera: the left side of the body lies to the right of x = 160."""
    left = [(165, 38), (172, 42), (185, 70), (195, 110), (200, 150), (175, 140), (178, 180), (180, 220)]
    right = [(320 - x, y) for x, y in left]
    joints = [(160, 45), *(joint for pair in zip(left, right, strict=True) for joint in pair)]
    return np.array([[(x, y, confidence) for x, y in joints]], np.float32)


BOX = np.array([[110, 30, 210, 228]], np.float32)


def test_a_box_is_drawn_along_its_edges_and_nowhere_else() -> None:
    picture = blank()
    draw_box(picture, BOX[0], (0, 0, 255))
    marks = touched(picture)
    assert marks[29:32, 150].any()
    assert marks[226:230, 150].any()
    assert marks[100, 109:112].any()
    assert marks[100, 208:212].any()
    assert not marks[34:224, 114:206].any()
    assert not marks[:26].any()
    assert not marks[:, :105].any()


def test_left_and_right_limbs_have_their_own_colours() -> None:
    picture = blank()
    draw_skeleton(picture, standing()[0], "coco-17", (0, 0, 0), min_confidence=0.3, line=3)
    assert tuple(picture[130, 197]) == SIDE_COLOURS["left"]
    assert tuple(picture[130, 122]) == SIDE_COLOURS["right"]
    assert tuple(picture[69, 160]) == SIDE_COLOURS["middle"]


def test_uncertain_joints_and_their_bones_are_left_out() -> None:
    joints = standing()[0]
    joints[9, 2] = 0.29  # the left wrist
    picture = blank()
    draw_skeleton(picture, joints, "coco-17", (0, 0, 0), min_confidence=0.3, line=2)
    assert not touched(picture)[120:160, 190:210].any()
    assert touched(picture)[120:160, 110:130].any()


def test_unknown_skeleton_draws_points_only() -> None:
    joints = np.array([[50, 50, 1], [200, 200, 1]], np.float32)
    picture = blank()
    draw_skeleton(picture, joints, "hands-2", (1, 2, 3), min_confidence=0.3, line=2)
    assert tuple(picture[50, 50]) == (1, 2, 3)
    assert tuple(picture[200, 200]) == (1, 2, 3)
    assert not touched(picture)[100:150].any()


def test_nothing_is_drawn_for_nobody() -> None:
    picture = blank()
    draw_people(picture, np.empty((0, 4), np.float32), np.empty((0, 17, 3), np.float32), [], [])
    assert not touched(picture).any()


@pytest.mark.parametrize("corner", [(-500.0, -500.0), (5000.0, 5000.0), (150.0, 3.0)])
def test_a_label_stays_in_the_picture_and_is_readable(corner: tuple[float, float]) -> None:
    picture = blank()
    draw_label(picture, "#17 0.93", corner, (0, 255, 255))
    plate = (picture == (0, 255, 255)).all(axis=2)
    rows, columns = np.flatnonzero(plate.any(axis=1)), np.flatnonzero(plate.any(axis=0))
    inside = picture[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    assert inside.shape[0] >= 10
    assert inside.shape[1] >= 40
    assert (inside.max(axis=2) < 90).any(), "dark letters on a light plate"
    assert not (inside == GREY).all(axis=2).any(), "a plate without holes"


def test_a_label_sits_above_its_box() -> None:
    picture = blank()
    draw_people(picture, BOX, standing(0.0), [3], ["#3"])
    assert touched(picture)[15:29, 110:130].any()
    assert not touched(picture)[15:29, 150:].any()


def test_a_caption_darkens_the_upper_edge_only() -> None:
    picture = blank()
    draw_caption(picture, "front door", "00:12.3")
    marks = touched(picture)
    assert marks[2].all()
    assert not marks[60:].any()
    assert (picture[:30, :100] > 150).any()
    assert (picture[:30, -60:] > 150).any()


@pytest.mark.parametrize(
    ("text", "shown"), [("Tür\n", "Tur?"), ("Straße, Łódź", "Strasse, Lodz"), ("病室3", "??3"), ("e\u0301", "e")]
)
def test_letters_beyond_ascii_show_without_their_marks(text: str, shown: str) -> None:
    given, expected = blank(), blank()
    draw_caption(given, text)
    draw_caption(expected, shown)
    assert np.array_equal(given, expected)


def test_id_colours_are_stable_and_distinct() -> None:
    assert id_colour(41) == id_colour(41)
    for track_id in range(200):
        a, b = np.array(id_colour(track_id)), np.array(id_colour(track_id + 1))
        assert np.abs(a - b).sum() > 100


def test_bones_cover_every_joint_and_keep_their_side() -> None:
    assert {joint for bone in COCO_17_BONES for joint in bone} == set(range(17))
    sides = {bone: bone_side(*bone) for bone in COCO_17_BONES}
    assert sides[7, 9] == "left"
    assert sides[14, 16] == "right"
    assert sides[11, 12] == "middle"


numbers = st.one_of(st.floats(-1e9, 1e9, width=32), st.sampled_from([np.nan, np.inf, -np.inf]))


@given(
    size=st.tuples(st.integers(2, 400), st.integers(2, 400)),
    box=st.lists(numbers, min_size=4, max_size=4),
    joints=st.lists(st.tuples(numbers, numbers, st.floats(0, 1, width=32)), min_size=17, max_size=17),
    label=st.text(max_size=30),
)
def test_no_value_breaks_the_drawing(size, box, joints, label) -> None:
    picture = blank(*size)
    draw_people(picture, np.array([box], np.float32), np.array([joints], np.float32), [-7], [label])
    draw_caption(picture, label, label)
    assert picture.shape == (size[1], size[0], 3)


def test_a_real_picture_keeps_its_pixels_outside_the_drawing(test_data) -> None:
    cv2 = pytest.importorskip("cv2")
    original = cv2.imread(str(test_data / "images" / "coco" / "000000000785.jpg"))
    picture = original.copy()
    draw_people(picture, np.array([[280, 44, 499, 388]], np.float32), np.zeros((1, 17, 3), np.float32), [1], ["#1"])
    changed = (picture != original).any(axis=2)
    assert 0.002 < changed.mean() < 0.03
    assert not changed[60:370, 300:480].any()


def has(pixels: np.ndarray, colour: tuple[int, int, int]) -> bool:
    """Whether one of the pixels (N, 3) has about this colour: thin lines are smoothed."""
    return bool((np.abs(pixels.astype(int) - colour).max(axis=1) < 60).any())


def test_a_zone_is_outlined_tinted_inside_and_left_alone_outside() -> None:
    picture = blank()
    draw_zones(picture, {"lawn": [(100, 100), (220, 100), (220, 200), (100, 200)]})
    assert has(picture[150, 98:103], SHAPE_COLOUR)
    inside = picture[150, 160]
    assert (inside != GREY).any()
    assert (np.abs(inside.astype(int) - GREY) < 25).all()
    assert not touched(picture)[120:, :90].any()
    assert not touched(picture)[210:].any()
    assert touched(picture)[80:100, 100:130].any(), "its name stands above its upper left corner"


def test_a_zone_that_a_rule_fires_on_is_red() -> None:
    picture = blank()
    draw_zones(picture, {"lawn": [(100, 100), (220, 100), (220, 200)]}, {"lawn"})
    assert has(picture[98:103, 180], ALARM_COLOUR)


def test_line_arrow_points_right() -> None:
    picture = blank()
    draw_lines(picture, {"door": ((160, 40), (160, 200))})  # downwards: the right hand is at smaller x
    marks = touched(picture)
    assert marks[60:190, 160].all()
    assert marks[118:123, 150].any()
    assert not marks[118:123, 170].any()


def test_shapes_beyond_the_picture_are_cut() -> None:
    picture = blank()
    draw_zones(picture, {"far": [(-1e6, -1e6), (1e6, -1e6), (1e6, 1e6)]})
    draw_lines(picture, {"far": ((-1e6, 0), (1e6, 5)), "none": ((7, 7), (7, 7))})
    assert touched(picture).any()


def test_who_a_rule_fires_on_is_red() -> None:
    picture = blank()
    draw_people(picture, BOX, standing(), [1], ["#1"], alarmed={1})
    assert has(picture[120, 108:113], ALARM_COLOUR)
    calm = blank()
    draw_people(calm, BOX, standing(), [1], ["#1"], alarmed={2})
    assert has(calm[120, 108:113], id_colour(1))
    assert not has(calm[120, 108:113], ALARM_COLOUR)


def test_reasons_stand_below_and_no_more_than_fit() -> None:
    picture = blank()
    draw_reasons(picture, [])
    assert not touched(picture).any()
    draw_reasons(picture, ["lying #3: " + "lean > 60deg (71 deg) " * 20, "b", "c", "d", "e"])
    assert not touched(picture)[: 240 * 2 // 3].any()
    bright = (picture == 255).all(axis=2)
    assert bright[200:].any()
    assert not bright[:, 318:].any(), "a line that is too long is cut"


def plates(picture: np.ndarray, colour: tuple[int, int, int]) -> int:
    """How many pixels of plates of this colour are to be seen."""
    return int((picture == colour).all(axis=2).sum())


def test_labels_of_a_crowd_do_not_cover_each_other() -> None:
    """Three people who stand where one stands: each has a label as large as alone."""
    box = np.array([[110, 60, 230, 220]], np.float32)
    ids = [1, 2, 3]
    alone = []
    for track_id in ids:
        draw_people(one := blank(), box, standing(0.0), [track_id], [f"#{track_id} 0.90"])
        draw_box(bare := blank(), box[0], id_colour(track_id))
        alone.append(plates(one, id_colour(track_id)) - plates(bare, id_colour(track_id)))
    crowd = blank()
    nobody = np.concatenate([standing(0.0)] * 3)
    draw_people(crowd, np.concatenate([box] * 3), nobody, ids, [f"#{track_id} 0.90" for track_id in ids])
    for track_id, least in zip(ids, alone, strict=True):
        assert plates(crowd, id_colour(track_id)) >= 0.95 * least, track_id


def test_labels_keep_out_of_caption_and_reasons() -> None:
    strips, picture = blank(), blank()
    draw_caption(strips, "room 3")
    draw_reasons(strips, ["fall"])
    between = np.flatnonzero(~touched(strips).any(axis=1))
    edges = np.array([[100, -90, 160, -10], [200, 260, 260, 400]], np.float32)
    places = free_places(picture, has_caption=True, reasons=1)
    joints = np.zeros((2, 17, 3), np.float32)
    draw_people(picture, edges, joints, [1, 2], ["#1 0.90", "#2 0.90"], places=places)
    labels = np.flatnonzero(touched(picture).any(axis=1))
    assert labels[0] >= between[0]
    assert labels[-1] <= between[-1]
    assert len(labels) >= 20, "two labels"


def test_a_label_or_caption_that_is_too_long_is_cut() -> None:
    picture = blank()
    draw_label(picture, "a very long name of a camera " * 5, (0.0, 120.0), (0, 255, 255))
    plate = np.flatnonzero((picture == (0, 255, 255)).all(axis=2).any(axis=0))
    assert (plate[0], plate[-1] + 1) <= (0, 320)
    dark = picture[100:120, 300:320].max(axis=2) < 90
    assert not dark[:, -2:].any(), "its letters end before the edge"
    short, long = blank(), blank()
    draw_caption(short, "", "00:12.3")
    draw_caption(long, "a very long name of a camera " * 5, "00:12.3")
    assert np.array_equal(short[:, -38:], long[:, -38:]), "the time stays readable"


def trail(points: list[list[float]], begins: list[bool] | None = None) -> Trail:
    count = len(points)
    ages = np.linspace(1, 0, count, dtype=np.float32)
    return Trail(3, np.array(points, np.float32), ages, np.array(begins or [True] + [False] * (count - 1)))


def test_a_trail_fades_to_its_beginning_and_changes_no_more() -> None:
    picture = np.full((100, 300, 3), 60, np.uint8)
    draw_trails(picture, [trail([[x, 50] for x in range(20, 281, 10)])])
    strength = [int(np.abs(picture[50, x].astype(int) - 60).sum()) for x in (40, 120, 200, 270)]
    assert strength == sorted(strength)
    assert strength[-1] > 3 * strength[0]
    assert np.abs(picture[50, 275].astype(int) - id_colour(3)).max() < 45
    assert (picture[:40] == 60).all()
    assert (picture[60:] == 60).all()


def test_a_broken_trail_is_drawn_in_pieces() -> None:
    picture = np.full((100, 300, 3), 60, np.uint8)
    draw_trails(picture, [trail([[20, 50], [100, 50], [200, 50], [280, 50]], [True, False, True, False])])
    assert (picture[50, 120:180] == 60).all()
    assert (picture[50, 240] != 60).any()


@pytest.mark.parametrize("points", [[[np.nan, 1], [5, 5]], [[-900, -900], [-800, -800]], [[5, 5]], [[9e9, 0], [5, 5]]])
def test_trails_beyond_the_picture_do_no_harm(points: list[list[float]]) -> None:
    draw_trails(np.full((100, 300, 3), 60, np.uint8), [trail(points)])
