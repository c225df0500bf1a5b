from __future__ import annotations

import pytest

from camgraph.pipeline.system import redaction
from camgraph.stages.sinks.delivery.mail.mail_answers import words_of


def test_an_answer_that_repeats_a_password_is_cut_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setattr(redaction, "_any_known", None)
    redaction.hide(["0123456789"])
    for before in range(180, 205):
        assert not set("0123456789") & set(words_of(535, "x" * before + "0123456789")[4:])
