from __future__ import annotations

from camgraph.tools.lab.proofs.live_faults.observed_run import Disclosure


def test_secrets_are_found_in_both_their_forms() -> None:
    looks = Disclosure(["ge/heim#1"])
    looks.search("log", "rtsp://me:***@door")
    assert looks.found == {}
    looks.search("log", "rtsp://me:ge%2Fheim%231@door")
    looks.search("status", "why: ge/heim#1")
    assert looks.found == {"log": 1, "status": 1}
    assert looks.searched == {"log": 2, "status": 1}
