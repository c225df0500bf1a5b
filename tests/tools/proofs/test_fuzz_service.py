"""What the fuzzing of the service counts as a fault."""

from __future__ import annotations

import pytest

from tools.proofs.fuzz_service import Found, prove


@pytest.mark.parametrize(("status", "is_fault"), [(200, False), (404, False), (500, True), (502, True), (503, False)])
def test_a_fault_of_the_service_is_told_with_its_request(status: int, is_fault: bool) -> None:
    found = Found()
    found.note("viewer: GET /api/cameras", status, 0.5)
    assert found.faults == [f"viewer: GET /api/cameras: status {status}"] * is_fault
    assert found.statuses == {str(status): 1}
    assert found.slowest_s == 0.5


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("refused", "is_fault"), [(2, False), (3, True)])
def test_a_service_that_mostly_refuses_has_proved_nothing(status: int, refused: int, is_fault: bool) -> None:
    found = Found()
    for number in range(100):
        found.note("viewer: GET /api/cameras", status if number < refused else 200, 0.1)
    found.note("viewer: POST /login", 429, 0.1)
    found.check_that_calls_were_tried()
    assert found.faults == [f"{refused} of 101 answers have a status of (429, 503)"] * is_fault


@pytest.mark.benchmark
def test_a_few_requests_to_each_call() -> None:
    pytest.importorskip("schemathesis", reason="needs the extra `fuzz`")
    found, wrong = prove(cases=2)
    assert wrong == []
    assert [fault for one in found.values() for fault in one.faults] == []
    assert found["admin"].statuses["200"] > 10
