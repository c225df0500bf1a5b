"""What a process counts must travel, whatever a stage counts with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline.metrics import Counters
from pipeline.wire import pack, unpack


def test_integers_of_any_type_are_counted_and_travel() -> None:
    counters = Counters()
    counters.add("seen", "a", np.ones(3, np.int64).sum())
    counters.add(np.str_("seen"), "a", np.uint8(4))
    counters.add("seen", "a")
    assert unpack(pack(counters.snapshot())) == [["seen", "a", 8]]


@pytest.mark.parametrize("wrong", [1.5, np.float32(2), "3", None])
def test_what_is_no_whole_number_is_the_mistake_of_who_counts_it(wrong: Any) -> None:
    counters = Counters()
    with pytest.raises(TypeError):
        counters.add("seen", "a", wrong)
    assert counters.snapshot() == []
