"""What the fuzzing of the service counts as a fault."""

from __future__ import annotations

import pytest

from tools.proofs.fuzz_service import Found


@pytest.mark.parametrize(("status", "is_fault"), [(200, False), (404, False), (500, True), (502, True), (503, False)])
def test_a_fault_of_the_service_is_told_with_its_request(status: int, is_fault: bool) -> None:
    found = Found()
    found.note("viewer: GET /api/cameras", status, 0.5)
    assert found.faults == [f"viewer: GET /api/cameras: status {status}"] * is_fault
    assert found.statuses == {f"{status // 100}xx": 1}
    assert found.slowest_s == 0.5
