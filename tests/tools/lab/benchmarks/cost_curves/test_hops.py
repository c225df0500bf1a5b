"""What a hop copies: nothing of a picture that was made in a slot."""

from __future__ import annotations

from typing import Any

import pytest

from camgraph.pipeline.transport.wire import read_arrays
from camgraph.tools.lab.benchmarks.cost_curves import hops
from camgraph.tools.lab.benchmarks.cost_curves.hops import Hop, one_hop_us


def test_one_hop_cost_from_small_and_large_messages() -> None:
    measured = [
        Hop("idle", 16, [300], pace_ms=20),
        Hop("small", 16, [80, 100, 90]),
        Hop("large", 10**6, [400]),
        Hop("odd", 10**5, [10]),
    ]
    measured.append(Hop("many", 16, [60], cameras=16))
    assert one_hop_us(measured) == {"idle": 150, "small": 45, "large": 355, "odd": 0, "many": 30}


def test_a_picture_made_in_a_slot_is_not_copied() -> None:
    found = hops.copied("small", (256, 256, 3), 5)
    assert found.copied == (0, 256 * 256 * 3)
    assert found.message < 400
    assert min(*found.encode_us, found.read_us) > 0


def test_a_copy_on_the_way_is_seen_wherever_it_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by what the slots say of themselves: the reader's bytes are compared when the maker's change."""

    def copying(*arguments: Any) -> dict[str, Any]:
        return {name: array.copy() for name, array in read_arrays(*arguments).items()}

    monkeypatch.setattr(hops, "read_arrays", copying)
    assert hops.copied("small", (256, 256, 3), 1).copied == (256 * 256 * 3, 256 * 256 * 3)
