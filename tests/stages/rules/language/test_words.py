"""Words with a definition of their own: conditions, values and points that others use like names."""

from __future__ import annotations

import pytest
from tests.stages.rules.language.test_condition import AROUND, joints, person

from camgraph.stages.rules.language import meaning
from camgraph.stages.rules.language.condition import Condition, compile_condition
from camgraph.stages.rules.language.expression import ExpressionError, parse
from camgraph.stages.rules.language.vocabulary import Scope

WORDS = {
    "raised": "left_wrist.y < brow",
    "brow": "nose.y - 0.1h",
    "hand": "left_wrist",
    "quick": "speed > 0.5h/s",
    "alarmed": "raised and quick",
    "many": "count > 3",
    "egg": "hen",
    "hen": "egg",
    "wrong": "left_wrist.y < nose.x and 3h",
    "broken": "left_wrist.y <",
}


def compiled(text: str, scope: Scope = "person") -> Condition:
    return compile_condition(text, scope, zones=["door"], lines=[], words=WORDS)


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("raised", True),
        ("not raised", False),
        ("raised and not quick", True),
        ("alarmed", False),
        ("nose.y > brow", True),
        ("hand.y < nose.y", True),
        ("hand in door", True),
        ("distance(hand, nose) > 1px", True),
    ],
)
def test_conditions_values_and_points(text: str, truth: bool) -> None:
    assert compiled(text).judge(joints(left_wrist=(30, 1)), person(), AROUND) is truth


def test_only_points_have_coordinates() -> None:
    with pytest.raises(ExpressionError, match="`brow` is no point, so it has no `y`"):
        compiled("brow.y < nose.y")


def test_a_word_with_an_unknown_joint_is_unknown() -> None:
    assert compiled("raised").judge(joints(left_wrist=None), person(), AROUND) is None
    assert compiled("not raised").judge(joints(left_wrist=None), person(), AROUND) is None


def test_in_a_pair_a_word_is_about_one_of_the_two() -> None:
    one = compiled("a.raised and not b.raised", "pair")
    up, down = joints(left_wrist=(30, 1)), joints()
    assert one.judge(up, person(), down, person(), AROUND) is True
    assert one.judge(down, person(), up, person(), AROUND) is False
    taller = compiled("a.brow < b.brow", "pair")
    assert taller.judge(up, person(top=-95.0), up, person(), AROUND) is True
    with pytest.raises(ExpressionError, match="`raised` of whom"):
        compiled("raised", "pair")


def test_evidence_names_the_word() -> None:
    condition = compiled("alarmed or nose.y < brow")
    texts = [text for text, _ in condition.parts]
    values = condition.values(joints(left_wrist=(30, 1)), person(), AROUND)
    assert texts == ["alarmed", "nose.y < brow"]
    assert values == (False, (12, pytest.approx(3)))


def test_mistakes_name_the_word_and_the_place_in_it() -> None:
    with pytest.raises(ExpressionError) as caught:
        compiled("quick and wrong and nose.y < 3")
    found = [(one.word, one.at, one.used_at) for one in caught.value.all]
    assert found == [("wrong", 0, 10), ("wrong", 26, 10), ("", 20, 20)]
    with pytest.raises(ExpressionError) as caught:
        compiled("not broken")
    assert (caught.value.word, caught.value.at, caught.value.used_at) == ("broken", 14, 4)


def test_a_wrong_word_is_read_once_and_told_at_each_use(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(meaning, "parse", lambda text: read.append(text) or parse(text))
    doubled = {f"word{n}": f"word{n - 1} or not word{n - 1}" for n in range(1, 8)}
    with pytest.raises(ExpressionError) as caught:
        compile_condition("word7 and wrong", "person", zones=[], lines=[], words={**WORDS, **doubled, "word0": "wrong"})
    assert len(read) == len(set(read)) == len(doubled) + 3, "each definition, and the condition"
    assert {(one.word, one.at, str(one)) for one in caught.value.all} == {
        (one.word, one.at, str(one)) for one in mistakes_of("wrong")
    }
    assert {one.used_at for one in caught.value.all} == {0, 10}


def mistakes_of(text: str) -> list[ExpressionError]:
    with pytest.raises(ExpressionError) as caught:
        compiled(text)
    return caught.value.all


def test_a_circle_of_words_is_an_error() -> None:
    with pytest.raises(ExpressionError, match="`egg` is defined by itself: egg -> hen -> egg") as caught:
        compiled("egg")
    assert caught.value.word == "hen"


def test_a_scene_word_stands_only_in_scenes() -> None:
    assert compiled("many", "scene").parts == (("many", compiled("raised").parts[0][1]),)
    with pytest.raises(ExpressionError, match="about the whole frame") as caught:
        compiled("many")
    assert caught.value.word == "many"


def test_definitions_cannot_blow_up() -> None:
    words = {"w0": "nose.y < 1px"} | {f"w{i}": f"w{i - 1} and w{i - 1}" for i in range(1, 30)}
    with pytest.raises(ExpressionError, match="definitions of the words are more than"):
        compile_condition("w29", "person", zones=[], lines=[], words=words)
