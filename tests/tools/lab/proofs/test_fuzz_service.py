"""What the fuzzing of the service counts as a fault."""

from __future__ import annotations

import httpx
import pytest

from camgraph.tools.lab.proofs.fuzz_service import Found, prove


@pytest.mark.parametrize(("status", "is_fault"), [(200, False), (404, False), (500, True), (502, True), (503, False)])
def test_a_fault_of_the_service_is_told_with_its_request(status: int, is_fault: bool) -> None:
    found = Found()
    found.note("viewer: GET /api/cameras", "right", httpx.Response(status), 0.5)
    assert found.faults == [f"viewer: GET /api/cameras: status {status}"] * is_fault
    assert found.statuses == {"right": {str(status): 1}, "wrong": {}}
    assert found.slowest_s == 0.5


@pytest.mark.parametrize(("error_id", "is_fault"), [("name-unknown", False), ("no-such-id", True), (None, True)])
def test_an_error_has_an_id_that_has_a_text(error_id: str | None, is_fault: bool) -> None:
    found = Found()
    told = {"error": "the run has no camera x", **({"id": error_id} if error_id else {})}
    found.note("viewer: GET /api/cameras/x/shapes", "right", httpx.Response(404, json=told), 0.5)
    assert bool(found.faults) == is_fault


@pytest.mark.parametrize(
    ("status", "kind", "is_fault"), [(200, "video/mp4", False), (200, "text/html", True), (404, "video/mp4", True)]
)
def test_the_answer_of_a_stream_is_one_that_is_described(status: int, kind: str, is_fault: bool) -> None:
    found = Found()
    answer = httpx.Response(status, headers={"Content-Type": f'{kind}; codecs="avc1.640028"'})
    found.note_stream("viewer: GET live.mp4", answer, {"200": {"content": {"video/mp4": {}}}})
    assert bool(found.faults) == is_fault
    assert found.streams == {str(status): 1}


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("refused", "is_fault"), [(2, False), (3, True)])
def test_a_service_that_mostly_refuses_has_proved_nothing(status: int, refused: int, is_fault: bool) -> None:
    found = Found()
    for number in range(100):
        answer = httpx.Response(status if number < refused else 200)
        found.note("viewer: GET /api/cameras", "right", answer, 0.1)
    found.note("viewer: POST /login", "wrong", httpx.Response(429), 0.1)
    found.check_that_calls_were_tried()
    most = f"viewer: GET /api/cameras {refused}"
    assert found.faults == [f"{refused} of 101 answers have a status of (429, 503); most of them: {most}"] * is_fault


def test_a_few_requests_to_each_call() -> None:
    pytest.importorskip("schemathesis", reason="needs the extra `fuzz`")
    found, wrong = prove(cases=2)
    assert wrong == []
    assert [fault for one in found.values() for fault in one.faults] == []
    assert found["admin"].statuses["right"]["200"] > 10
    assert found["admin"].statuses["wrong"]["400"] > 5
    assert found["admin"].streams["200"]
