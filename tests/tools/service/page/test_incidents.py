"""The list of incidents in headless Chromium: what it says while the service refuses, and how much it keeps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from camgraph_test_stages.browser import Browser

pytestmark = pytest.mark.processes

PAGE = 30
NOTHING = "Nothing has happened yet."
SERVICE = """
window.kept = [];
window.refuses = "";
window.fetch = (path) => {
  const asked = new URLSearchParams(path.split("?")[1]);
  const answer = (ok, body) => Promise.resolve({ ok, status: ok ? 200 : 503, json: () => Promise.resolve(body) });
  if (refuses) return answer(false, { error: refuses });
  const behind = kept.slice(kept.findIndex((one) => one.incident === asked.get("before")) + 1);
  const found = behind.filter((one) => !asked.get("camera") || one.camera === asked.get("camera"));
  return answer(true, { incidents: found.slice(0, asked.get("limit")), more: found.length > asked.get("limit") });
};
"""


def incident(number: int, camera: str = "hall") -> dict[str, Any]:
    none = {"state": "none", "url": None, "why": ""}
    return {
        "incident": f"{number:08x}", "camera": camera, "action": "fall", "rule": "fall", "phase": "single",
        "start_time": "2026-11-26T02:00:00Z", "duration_s": 1.0, "labels": [], "snapshot": none, "clip": none,
        "people": 1, "zones": [], "because": [], "measured": [], "crops": [],
    }  # fmt: skip


@pytest.fixture
def shown(page: Browser) -> Browser:
    """The view of a service that has no incident yet."""
    cameras = {name: {"state": "live", "through_s": 0.1} for name in ("hall", "yard")}
    state = {"status": {"cameras": cameras}, "running": [], "incidents": [], "me": {"role": "viewer", "name": ""}}
    page.run(SERVICE)
    page.run(f"window.state = {json.dumps(state)}; state.silences = new page.Silences(); state.list = page.emptyList()")
    page.run("state.silences.update(state.status.cameras); window.view = page.incidentsView(state)")
    return page


def update(page: Browser, *newest: dict[str, Any]) -> None:
    """What the page does every two seconds. The answers of this service are there at once."""
    page.run(f"state.incidents = {json.dumps(newest)}; view.update(); new Promise((go) => setTimeout(go, 20))")


def choose(page: Browser, camera: str) -> None:
    page.run(f"""(() => {{
        const choice = view.element.querySelector("select");
        choice.value = "{camera}";
        choice.dispatchEvent(new Event("change"));
        return new Promise((go) => setTimeout(go, 20));
    }})()""")


def rows(page: Browser) -> int:
    return int(page.run("view.element.querySelectorAll('.row').length"))


def text(page: Browser) -> str:
    return str(page.run("view.element.textContent"))


def test_a_refusal_is_not_taken_for_a_quiet_night(shown: Browser) -> None:
    shown.run(f"kept = {json.dumps([incident(2), incident(1, 'yard')])}")
    update(shown, incident(2))
    assert rows(shown) == 2
    shown.run("refuses = 'the disk does not answer'")
    choose(shown, "yard")
    update(shown, incident(2))
    assert NOTHING not in text(shown)
    assert "the disk does not answer" in text(shown)
    shown.run("refuses = ''")
    update(shown, incident(2))
    assert rows(shown) == 1
    assert "the disk" not in text(shown)


def test_a_quiet_night_is_told(shown: Browser) -> None:
    assert NOTHING not in text(shown), "it has not been asked yet"
    update(shown)
    assert NOTHING in text(shown)


def test_a_page_that_stands_for_months_keeps_one_page_of_rows(shown: Browser) -> None:
    for number in range(1, 100):
        shown.run(f"kept = [{json.dumps(incident(number))}, ...kept]")
        update(shown, incident(number))
    assert rows(shown) == PAGE
    shown.run("[...view.element.querySelectorAll('button')].at(-1).click()")
    update(shown, incident(99))
    assert rows(shown) == 2 * PAGE
    shown.run(f"kept = [{json.dumps(incident(100))}, ...kept]")
    update(shown, incident(100))
    assert rows(shown) == 2 * PAGE
