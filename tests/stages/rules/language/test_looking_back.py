"""Conditions with memory, judged frame by frame on a person made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stages.rules.language.film import LINES, SECOND, ZONES, Pose, answers, filmed, picture, rule, still, verdicts

from camgraph.stages.rules.language.condition import compile_condition
from camgraph.stages.rules.language.expression import ExpressionError
from camgraph.stages.rules.language.geometry import Surroundings
from camgraph.stages.rules.language.judge import Judge
from camgraph.stages.rules.language.program import program_of

UP, DOWN, HIDDEN = still(left_wrist=(312, 100)), still(), still(left_wrist=None)
RAISED = "left_wrist.y < nose.y"


def film(letters: str) -> list[Pose | None]:
    """T: the hand is up, F: down, ?: not known, a blank: nobody seen. A frame each."""
    return [{"T": UP, "F": DOWN, "?": HIDDEN, " ": None}[letter] for letter in letters]


def in_letters(reported: Sequence[bool | None]) -> str:
    return "".join("?" if truth is None else "T" if truth else "F" for truth in reported)


@pytest.mark.parametrize(
    ("when", "seen", "expected"),
    [
        (f"{RAISED} for 0.3s", "FTTTTTTF", "FFFFTTTF"),
        (f"{RAISED} for 0.3s", "TT?TTTF?", "FF?TTTF?"),
        (f"{RAISED} for 0.3s", "T T T T?", "F?F?T?T?"),
        (f"{RAISED} for 0.3s", "TT?FTTTT", "FF?FFFFT"),
        (f"{RAISED} for 0.3s", "TTT??????TTTT", "FFF??????FFFT"),
        (f"not {RAISED} for 0.2s", "TFFFT", "FFFTF"),
        (f"was {RAISED} within 0.3s", "FTFFFFF", "FTTTTFF"),
        (f"was {RAISED} within 0.3s", "FTF??FF", "FTTTTFF"),
        (f"was {RAISED} within 0.3s", "???????FFFFF", "??????????FF"),
        (f"not was {RAISED} within 0.3s", "FTFFFFF", "TFFFFTT"),
        (f"since({RAISED}) > 0.15s", "FFTFFFTF", "??FFTTFF"),
        (f"total({RAISED}, 1s) >= 0.3s", "TTFTTFTTFF", "FFFFFFFTTT"),
        (f"total({RAISED}, 1s) >= 0.3s", "T T?T?FFFF", "F?FFTTTTTT"),
        (f"first {RAISED} then not {RAISED}", "FFTTFFTF", "FFFFTTFT"),
        (f"first {RAISED} then not {RAISED} within 0.2s", "FT???FFF", "FF??FFFF"),
        (f"first {RAISED} then {RAISED}", "FTTTFT", "FFTTFF"),
        (f"first {RAISED} then not {RAISED} for 0.2s", "FTTFFFFTF", "FFFFFTTFF"),
    ],
)  # fmt: skip
def test_truths(when: str, seen: str, expected: str) -> None:
    assert in_letters(answers(when, film(seen))) == expected


def fall(at_s: float, takes_s: float = 0.4, height: float = 20.0) -> list[Pose | None]:
    def pose(t: float) -> Pose:
        fallen = min(max((t - at_s) / takes_s, 0), 1) * height
        return Pose({"left_hip": (304, 150 + fallen), "right_hip": (296, 150 + fallen)})

    return filmed(pose, 4, 10)


@pytest.mark.parametrize(
    ("when", "true_s"),
    [
        ("drop(hips.y) > 15px within 0.8s", (1.4, 1.8)),
        ("drop(hips.y, 0.8s) > 15px", (1.4, 1.8)),
        ("drop(hips.y, 0.2s) > 15px", None),
        ("rise(hips.y) > 1px within 0.8s", None),
        ("change(hips.y, 0.8s) > 15px", (1.4, 1.8)),
        ("hips.y > usual(hips.y, 2s) + 15px", (1.4, 2.0)),
        ("hips.y - before(hips.y, 0.5s) > 15px", (1.4, 1.5)),
        ("greatest(hips.y, 1s) - hips.y > 1px", None),
        ("hips.y - least(hips.y, 1s) > 15px", (1.4, 2.0)),
        ("hips.y - average(hips.y, 1s) > 9.5px", (1.3, 1.7)),
        ("velocity(hips.y) > 40px/s", (1.3, 1.4)),
        ("speed(left_hip) > 40px/s", (1.3, 1.4)),
    ],
)
def test_values(when: str, true_s: tuple[float, float] | None) -> None:
    truths = answers(when, fall(1.0))
    when_true = [i / 10 for i, truth in enumerate(truths) if truth]
    assert (when_true[:1] + when_true[-1:] or None) == (list(true_s) if true_s else None)
    assert None not in truths[6:]


@pytest.mark.parametrize("missing_s", [1.5, 6.0, 20.0])
@pytest.mark.parametrize(
    "when",
    [
        "drop(hips.y, 0.8s) > 15px",
        "was hips.y < 155px within 1s and hips.y > 165px",
        "velocity(hips.y) > 40px/s",
        "speed(left_hip) > 40px/s",
        "first hips.y < 155px then hips.y > 165px within 1s",
    ],
)
@pytest.mark.slow
def test_a_stall_of_the_stream_is_no_sudden_movement(when: str, missing_s: float) -> None:
    judge = Judge([rule(when)], lambda size: Surroundings(*size, ZONES, {}))
    begun = [judge.judge(picture(round(i * SECOND / 25), [fall(9)[0]])) for i in range(100)]
    low = Pose({"left_hip": (304, 170), "right_hip": (296, 170)})
    begun += [judge.judge(picture(round((4 + missing_s + i / 25) * SECOND), [low])) for i in range(100)]
    assert [verdict.phase for verdicts in begun for verdict in verdicts] == []


def lowered(at_s: float, seconds: float, fps: float) -> list[Pose | None]:
    """The hips 20 pixels lower from `at_s` on."""
    low = {"left_hip": (304.0, 170.0), "right_hip": (296.0, 170.0)}
    return filmed(lambda t: Pose(dict(low) if t >= at_s else {}), seconds, fps)


@pytest.mark.parametrize("minutes", [1, 2, 5])
@pytest.mark.parametrize("fps", [25, 3])
@pytest.mark.slow
def test_long_windows_are_thinned_and_not_torn(minutes: int, fps: float) -> None:
    window_s, film = 60 * minutes, lowered(100, 112 + 0.2 * 60 * minutes, fps)
    mean = answers(f"average(hips.y, {minutes}min) < 153px", film, fps)
    late = [i / fps - 100 for i, truth in enumerate(mean) if truth is False]
    # 3 of 20 pixels, once they have lasted for 3/20 of the window that has been seen
    assert late[0] == pytest.approx(0.15 * min(window_s, 100 / 0.85), abs=0.02 * window_s + 1)
    assert len(late) == len(mean) - round((late[0] + 100) * fps), "it does not flicker"


@pytest.mark.parametrize("fps", [25, 3])
@pytest.mark.slow
def test_a_value_of_long_ago_is_known_all_the_time(fps: float) -> None:
    truths = answers("before(hips.y, 1min) < 160px", lowered(100, 130, fps), fps)
    assert None not in truths[round(61.5 * fps) :]
    assert all(truths[round(61.5 * fps) :])


# ---- the frame rate


def falling(t: float) -> Pose | None:
    """Stands, walks a little from 3 s on, falls at 5 s, lies there, is unseen from 7 to 7.3 s, rises at 9 s."""
    if 7 < t < 7.3:
        return None
    walked = 6 * min(max(t - 3, 0), 1.5)
    fallen = min(max((t - 5) / 0.6, 0), 1) - min(max((t - 9) / 0.6, 0), 1)
    hips, head = 150 + 25 * fallen, 112 + 63 * fallen
    moved = {"left_hip": (304.0, hips), "right_hip": (296.0, hips), "nose": (300 + 40 * fallen, head)}
    shoulders = 125 + 50 * fallen
    moved |= {"left_shoulder": (306 + 24 * fallen, shoulders), "right_shoulder": (294 + 24 * fallen, shoulders)}
    return Pose(dict(moved), feet=(300 + walked, 190))


TIMELESS = [
    "lean > 60deg for 1s",
    "was lean < 20deg within 1.5s and lean > 60deg",
    "since(lean < 20deg) > 2s",
    "total(lean > 60deg, 10s) >= 2s",
    "drop(hips.y) > 15px within 1s",
    "rise(hips.y, 1s) > 15px",
    "change(lean, 1s) > 50deg",
    "before(lean, 1s) + 50deg < lean",
    "hips.y > usual(hips.y, 4s) + 15px",
    "hips.y - least(hips.y, 2s) > 15px",
    "lean > average(lean, 3s) + 40deg",
    "velocity(hips.y, 0.8s) > 15px/s",
    "speed(nose, 0.8s) > 40px/s",
    "first lean < 20deg then lean > 60deg within 1.5s then lean > 60deg for 1s",
    "first lean > 60deg then lean < 20deg within 2s",
]


@pytest.mark.parametrize("when", TIMELESS)
@pytest.mark.slow
def test_the_frame_rate_does_not_matter(when: str) -> None:
    """From 25 to 3 frames a second: begins at the same time, but for the frames in which it is noticed."""
    begins: dict[float, float] = {}
    lasts: dict[float, float] = {}
    for fps in (25, 12.5, 8, 5, 3):
        truths = answers(when, filmed(falling, 12, fps), fps)
        true = [i / fps for i, truth in enumerate(truths) if truth]
        begins[fps], lasts[fps] = true[0], len(true) / fps
    for fps in (12.5, 8, 5, 3):
        assert begins[fps] == pytest.approx(begins[25], abs=2.5 / fps), begins
        assert lasts[fps] == pytest.approx(lasts[25], abs=3 / fps), lasts


# ---- mistakes


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("in door and lean > 60deg for 2s", 29, "does `for` go with the last condition only"),
        ("in door or lean > 60deg for 2s", 28, "does `for` go with the last condition only"),
        ("lean > 60deg for", 16, "expected a time such as 2s or 500ms after `for`"),
        ("lean > 60deg for 2", 17, "expected a time such as 2s"),
        ("lean > 60deg for 2h", 17, "`2h` is no time"),
        ("lean > 60deg for 11min", 17, "expected a time from 1ms to 10min"),
        ("lean > 60deg for 0s", 17, "expected a time from 1ms to 10min"),
        ("was in door", 11, "expected `within` and a time after `was ...`"),
        ("was in door and lean > 1deg within 2s", 12, "several conditions stand in parentheses"),
        ("was drop(hips.y) > 1bl within 2s", 30, "is the window of the comparison"),
        ("in door within 2s", 8, "`within` has no place here"),
        ("drop(hips.y, 1s) > 1bl within 2s", 23, "`within` has no place here"),
        ("in door then lean > 1deg", 8, "a sequence begins with `first`"),
        ("first in door", 13, "expected `then` and a condition"),
        ("first in door within 2s then lean > 1deg", 14, "the first step follows no other"),
        ("in door while lean > 1deg", 8, "it follows `lost`"),
        ("since(lean) > 2s", 6, "`lean` is an angle: expected a comparison"),
        ("since(in door, 2s) > 2s", 0, "expected since"),
        ("total(in door) > 2s", 0, "expected total"),
        ("total(in door, 2deg) > 2s", 15, "`2deg` is no time"),
        ("dwell(hall) > 2s", 6, "there is no zone `hall`"),
        ("dwell() > 2s", 0, "expected dwell"),
        ("usual(hips.y) > 2px", 0, "over which time? expected usual"),
        ("drop(in door) > 1bl", 5, "is a condition: expected a number"),
        ("lowest(hips.y, 2s) > 3px", 0, "write greatest(...) for the lowest place"),
        ("speed(hips.y) > 1bl/s", 0, "expected a point, as in speed"),
        ("drop(hips.y) > 1s", 0, "cannot be compared"),
        ("before(speed, 2s) < 1px", 0, "cannot be compared"),
        ("velocity(lean) > 3deg", 0, "cannot be compared"),
    ],
)
def test_mistakes(text: str, at: int, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_condition(text, "person", zones=["door"], lines=[])
    assert message in str(caught.value)
    assert caught.value.at == at


def test_all_mistakes_of_a_condition_with_memory_at_once() -> None:
    text = "first in hall then left_hand.y < nose.y within 2s then drop(nose.y) > 3 for 1s"
    with pytest.raises(ExpressionError) as caught:
        compile_condition(text, "person", zones=["door"], lines=[])
    assert [one.at for one in caught.value.all] == [9, 19, 55]


def test_words_of_the_grammar_are_names_elsewhere() -> None:
    zones = ["first", "then", "was", "within", "for", "while", "lost"]
    text = " and ".join(f"in {name} and not enters({name})" for name in zones)
    assert compile_condition(text, "person", zones=zones, lines=[]).zones == frozenset(zones)


def test_at_most_32_parts_with_memory() -> None:
    words = {f"w{n}": f"age > {n}s for 2s" for n in range(33)}
    texts = [" or ".join(f"w{n}" for n in range(count)) for count in (32, 33)]
    assert len(compile_condition(texts[0], "person", zones=[], lines=[], words=words).cells) == 32
    with pytest.raises(ExpressionError, match="more than 32 parts of the condition look back"):
        compile_condition(texts[1], "person", zones=[], lines=[], words=words)


def test_equal_parts_are_one_cell() -> None:
    text = "usual(hips.y, 9s) < 3px or usual(hips.y, 9s) > 5px or usual(hips.y, 8s) > 5px"
    assert len(compile_condition(text, "person", zones=[], lines=[]).cells) == 2


@pytest.mark.parametrize("nested", ["not (", "was (", "("])
def test_deep_nesting_is_a_mistake_and_no_crash(nested: str) -> None:
    closing = {"not (": ")", "was (": ") within 2s", "(": ") for 2s"}[nested]
    text = nested * 45 + "in door" + closing * 45
    with pytest.raises(ExpressionError, match=r"levels of parentheses|words and signs"):
        compile_condition(text, "person", zones=["door"], lines=[])


def test_nested_parts_are_stepped_inner_ones_first() -> None:
    text = "was (lean > 60deg for 0.5s) within 1s"
    truths = answers(text, filmed(falling, 12, 10))
    true = [i / 10 for i, truth in enumerate(truths) if truth]
    assert (true[0], true[-1]) == (pytest.approx(6.0, abs=0.15), pytest.approx(10.2, abs=0.15))


PURE = [when for when in TIMELESS if " and " not in when]
"""Without parts that one frame decides."""


OF_STEPS = [
    "lost",
    "lost while score > 0.5",
    "enters(door)",
    "leaves(door)",
    "crosses(gate)",
    "crosses(gate, leftward)",
]


@pytest.mark.parametrize(
    "when", [*PURE, *OF_STEPS, "not was in door within 3s", "dwell(door) < 1s", "age >= 0s", "age >= 0s for 1s"]
)
def test_nothing_came_before_a_photograph(when: str) -> None:
    judge = Judge([rule(when), rule(f"not ({when})")], lambda size: Surroundings(*size, ZONES, LINES))
    assert list(judge.judge(picture(0, [still()], alone=True))) == []
    assert not judge.judged


@pytest.mark.parametrize("when", ["enters(door)", "leaves(door)", "crosses(gate)", "crosses(gate, rightward)"])
def test_nobody_knows_where_the_lost_go(when: str) -> None:
    one = rule(f"not {when} or lost while score < 0", gap_s=0.2, hold=0.0)
    ends = [verdict.picture.time_ns for verdict in verdicts(one, [still()] * 5 + [None] * 30) if verdict.phase == "end"]
    assert ends == [4 * SECOND // 10]


def test_evidence_of_parts_with_memory() -> None:
    one = rule("first lean < 20deg then lean > 60deg and age > 1s within 1.5s", name="fall")
    start = next(iter(verdicts(one, filmed(falling, 12, 10))))
    texts = {part.text: (part.kind, part.values) for part in start.evidence}
    whole = "first lean < 20deg then lean > 60deg and age > 1s within 1.5s"
    assert list(texts) == [whole, "step 1: lean < 20deg", "step 2: lean > 60deg and age > 1s within 1.5s"]
    assert texts[whole] == ("truth", True)
    kind, (ago, _) = texts["step 1: lean < 20deg"]  # type: ignore[misc]
    assert (kind, 0.1 <= ago <= 0.5) == ("ago", True)
    drop = next(iter(verdicts(rule("drop(hips.y) > 15px within 1s for 0.2s"), filmed(falling, 12, 10))))
    (text, values), (outer, holds) = [(part.text, part.values) for part in drop.evidence]
    assert (text, outer, holds) == ("drop(hips.y) > 15px", "drop(hips.y) > 15px within 1s for 0.2s", True)
    assert values == (pytest.approx(25), 15)


def test_a_side_of_an_or_that_is_unknown_is_so_in_the_evidence() -> None:
    hidden = still(left_wrist=None, left_elbow=None)
    one = rule("raised or nose.y < 0.5fh or beyond(left_wrist, top)", words={"raised": RAISED})
    assert [part.values for part in next(verdicts(one, [hidden])).evidence] == [None, (112, 240), None]


@pytest.mark.parametrize(
    ("when", "seen", "expected"),
    [
        (f"was {RAISED} within 0.5s", "FTFFFF", "FTTTFF"),
        (f"first {RAISED} then not {RAISED} within 0.5s", "TFFTTF", "FTTFFT"),
        (f"first {RAISED} then not {RAISED} within 0.5s", "TF", "FT"),
        (f"total({RAISED}, 0.5s) >= 2s", "TTTTFF", "FFTTFF"),
        ("drop(left_wrist.y, 0.5s) > 20px", "TTFFFF", "FFTTFF"),
        ("change(left_wrist.y, 0.5s) > 20px", "TTFFFF", "FFTTFF"),
        ("left_wrist.y > least(left_wrist.y, 0.5s)", "TTFFFF", "FFTTFF"),
        ("left_wrist.y != usual(left_wrist.y, 0.5s)", "TTFFFF", "FFTFFF"),
        ("velocity(left_wrist.y) > 20px/s", "TTFFFF", "?FTTFF"),
    ],
)
def test_at_one_frame_a_second_windows_hold_two_intervals(when: str, seen: str, expected: str) -> None:
    assert in_letters(answers(when, film(seen), fps=1)) == expected


@pytest.mark.parametrize(
    ("when", "fps", "places", "expected"),
    [
        ("dwell(door) > 0.35s", 10, "OIIIIIOOIIO", "FFFFFTTTTTT"),
        ("dwell(door, 0.1s) > 0.35s", 10, "OIIIIIIOOOII", "FFFFFTTTTFFF"),
        ("dwell(door, 0.1s) > 2.5s", 1, "IIIIIOOOO", "FFFTTTTFF"),
        ("dwell(nose, door) > 0.35s", 10, "IIIIIII", "FFFFTTT"),
        ("dwell(door) > 0.35s", 10, "III  III", "FFF??TTT"),
    ],
)
def test_how_long_somebody_stays_in_a_zone(when: str, fps: float, places: str, expected: str) -> None:
    frames = [{"I": Pose({}, feet=(50, 190)), "O": still(), " ": None}[place] for place in places]
    assert in_letters(answers(when, frames, fps)) == expected


def test_a_window_behind_a_comparison_is_not_of_its_inside() -> None:
    text = "total(change(lean) > 1deg, 60s) / 60s > change(score) within 2s"
    times = [cell.times for cell in compile_condition(text, "person", zones=[], lines=[]).cells]
    assert times == [(SECOND,), (60 * SECOND,), (2 * SECOND,)]


WORDS = (
    *("first", "then", "was", "within", "for", "while", "lost", "and", "or", "not", "in", "door", "(", ")", ",", "2s"),
    *("lean", "hips.y", "nose", "wrist.y", "drop", "usual", "since", "total", "dwell", "either", "both", "swings"),
    *("speed", "velocity", "<", ">", "==", "-", "*", "/", "60deg", "0.5bl", "3px", "2/s", "12min", "running", "beyond"),
)


@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join))
@settings(max_examples=600, deadline=2000)
def test_any_text_is_a_condition_or_a_mistake(text: str) -> None:
    places: list[int] = []
    try:
        program_of(((compile_condition(text, "person", zones=["door"], lines=[]), SECOND),))
    except ExpressionError as error:
        places = [one.at for one in error.all]
    assert all(0 <= at <= len(text) for at in places)
