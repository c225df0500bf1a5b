"""The whole page in headless Chromium, over a service that the tests make of answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from camgraph_test_stages.browser import Browser
from camgraph_test_stages.contrast import TOO_PALE

pytestmark = pytest.mark.processes

LONG = "a" * 40
SERVICE = """
window.role = "admin";
window.isOut = false;      // nobody is logged in
window.isGone = false;     // no answer at all
window.refuses = [];       // paths that are answered 503
window.incidents = [];
window.cameras = ["hall", "yard"];
window.asked = [];
const file = { state: "none", url: null, why: "" };
window.incident = (name, more) => ({
  incident: name, camera: cameras[0], action: "fall", rule: "fall", severity: "alarm", phase: "running",
  about: "", reason: "", start_time: "2026-11-26T02:00:00Z", end_time: null, duration_s: null,
  people: 1, zones: [], because: [], measured: [],
  labels: [], keep: false, snapshot: file, clip: file, crops: [], ...more,
});
const camera = {
  state: "live", why: "", error: "", since_s: 9, through_s: 0.1, fps: 5, losses: 0, drops: 0, drops_by_reason: {},
};
const status = () => ({
  phase: "running", uptime_s: 60, memory_mb: 500, limit: null, outbox: {}, stages: {}, troubles: [],
  health: { level: "healthy", reason: "so it is" }, cameras: Object.fromEntries(cameras.map((name) => [name, camera])),
});
const listed = (query) => ({
  incidents: incidents.filter((one) => !query.includes("phase=running") || one.phase === "running"), more: false,
});
const shapes = { stages: [{ stage: "actions", file: "rules.yaml", version: "1", zone: {}, line: {} }], problems: [] };
const recent = { at: [], every_s: 5, fps: [], drops: [], age_ms_p50: [], age_ms_p95: [] };
function answer(path, query) {
  if (path === "/api/me") return { role, name: "night" };
  if (path === "/api/status") return status();
  if (path === "/api/incidents") return listed(query);
  if (path.startsWith("/api/incidents/")) return incidents.find((one) => path.endsWith(`/${one.incident}`));
  if (path === "/api/recent") return recent;
  if (path.endsWith("/shapes")) return shapes;
  return null;
}
window.fetch = async (address) => {
  const { pathname, search } = new URL(address, location.href);
  asked.push(pathname);
  if (isGone) throw new TypeError("no network");
  const sent = (body, status = 200) => new Response(JSON.stringify(body), { status });
  if (refuses.includes(pathname)) return sent({ error: "the disk does not answer" }, 503);
  if (pathname === "/login") isOut = false;
  if (isOut) return sent({ error: "a token is needed" }, 401);
  const body = pathname === "/login" ? {} : answer(pathname, search);
  return body ? sent(body) : sent({ error: "there is no such thing" }, 404);
};
window.EventSource = class { close() {} };
window.confirm = (text) => { (window.questions ||= []).push(text); return false; };
addEventListener("beforeunload", (event) => event.stopImmediatePropagation(), true);  // left without a dialogue
window.look = () => document.dispatchEvent(new Event("visibilitychange"));
"""
VERDICT = "document.getElementById('verdict').textContent"
BUTTON = "[...document.querySelectorAll('button')].find((one) => one.textContent === '{}')"


@pytest.fixture
def whole(files: str, chromium: Browser) -> Iterator[Browser]:
    """The wall of two cameras where nothing happens, as an admin sees it."""
    opened(chromium, files, "")
    yield chromium
    chromium.open("about:blank")
    chromium.errors.clear()


def opened(page: Browser, files: str, begin: str) -> None:
    """Open the page anew; `begin` is run before it."""
    added = page.send("Page.addScriptToEvaluateOnNewDocument", source=f"{SERVICE}{begin}")
    page.open("about:blank")
    page.open(f"{files}/")
    page.send("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])
    page.until(f"{VERDICT} !== '' && !!document.querySelector('main > *')")


def drawn(page: Browser) -> None:
    """Somebody has begun to draw a zone."""
    page.run("location.hash = '#/camera/hall'")
    page.until(f"!!{BUTTON.format('Draw zones and lines')}")
    page.run(f"{BUTTON.format('Draw zones and lines')}.click()")
    page.until("document.querySelectorAll('#shape option').length === 2")
    page.run("document.querySelector('.board').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}))")
    assert page.run("document.querySelectorAll('.board .reach').length") == 1


def logged_out(page: Browser) -> None:
    """Somebody logs out in another window, and this page asks for a token."""
    page.run("isOut = true; look()")
    page.until("!!document.getElementById('token')")


def test_who_was_logged_out_sees_nothing_of_before(whole: Browser) -> None:
    logged_out(whole)
    assert whole.run(f"[{VERDICT}, document.title, document.getElementById('logout').hidden]") == ["", "camgraph", True]
    for view in ("incidents", "", "health"):
        whole.run(f"location.hash = '#/{view}'; new Promise((go) => setTimeout(go, 50))")
        assert whole.run("[document.querySelectorAll('.tile').length, !!document.getElementById('token')]") == [0, True]


def test_a_drawing_outlives_a_login(whole: Browser) -> None:
    drawn(whole)
    logged_out(whole)
    assert "Your drawing is kept until you have logged in." in whole.text()
    assert not whole.run("document.querySelector('.board').checkVisibility()")
    whole.run("document.getElementById('token').value = 'a-token'")
    whole.run(f"{BUTTON.format('Log in')}.click()")
    whole.until("document.querySelector('.board')?.checkVisibility()")
    assert whole.run("document.querySelectorAll('.board .reach').length") == 1
    assert whole.run("[!document.getElementById('token'), document.getElementById('logout').hidden]") == [True, False]
    whole.until(f"{VERDICT}.startsWith('All is well')")


def test_who_logs_out_is_asked_for_a_drawing(whole: Browser) -> None:
    drawn(whole)
    whole.run(f"{BUTTON.format('Log out')}.click()")
    assert whole.run("[questions.length, asked.includes('/logout')]") == [1, False]


def test_a_logout_that_fails_is_told(whole: Browser) -> None:
    whole.run(f"isGone = true; {BUTTON.format('Log out')}.click()")
    whole.until(
        "document.getElementById('refused').textContent === 'You are still logged in: camgraph does not answer.'"
    )
    assert whole.run("document.getElementById('refused').checkVisibility()")


def test_the_title_of_a_hidden_window_tells_of_silence(whole: Browser) -> None:
    whole.run("incidents = [incident('1')]; look()")
    whole.until("document.title === '(1) camgraph'")
    whole.run("isGone = true; look()")
    whole.until("document.title === '(?) camgraph does not answer'")
    whole.run("isGone = false; look()")
    whole.until("document.title === '(1) camgraph'")


def test_nobody_is_calm_while_the_incidents_cannot_be_read(whole: Browser) -> None:
    whole.until(f"{VERDICT} === 'All is well: 2 cameras'")
    whole.run("refuses = ['/api/incidents']; look()")
    whole.until(f"{VERDICT}.startsWith('Nobody knows what happens now: the incidents cannot be read since ')")
    assert whole.run("document.querySelectorAll('.tile.unread').length") == 2
    assert whole.run("document.title") == "(?) camgraph"
    whole.run("refuses = []; incidents = [incident('1')]; look()")
    whole.until(f"{VERDICT} === '1 incident going on: hall'")
    assert whole.run("document.querySelectorAll('.tile.unread').length") == 0


def test_old_incidents_are_not_read_aloud_as_news(whole: Browser, files: str) -> None:
    opened(whole, files, "incidents = [incident('1')]; refuses = ['/api/incidents'];")
    whole.run("refuses = []; look()")
    whole.until(f"{VERDICT} === '1 incident going on: hall'")
    assert whole.run("document.getElementById('news').textContent") == ""
    whole.run("incidents = [incident('2'), incident('1')]; look()")
    whole.until("document.getElementById('news').textContent === 'Fall, hall'")


LABELLED = {"labels": [{"label": "acknowledged", "note": "", "by": "night", "time": "2026-11-26T02:00:05Z"}]}
VIEWS = ("", "camera/", "incidents", "incidents/1", "health")


def show(page: Browser, view: str, camera: str) -> None:
    place = f"#/{view}{camera if view.endswith('/') else ''}"
    page.run(f"location.hash = {place!r}")
    page.until(f"location.hash === {place!r} && document.querySelector('main').innerText.length > 20")


def test_a_long_name_does_not_widen_a_phone(whole: Browser, files: str, tmp_path: Path) -> None:
    opened(whole, files, f"cameras = ['{LONG}']; incidents = [incident('1', {json.dumps(LABELLED)})];")
    try:
        for view in VIEWS:
            show(whole, view, LONG)
            whole.picture(tmp_path / f"{view.replace('/', '-')}.png", width=360, height=740)
            assert whole.run("[document.documentElement.scrollWidth, window.innerWidth]") == [360, 360], view
    finally:
        whole.send("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("dark", [False, True])
def test_rows_that_somebody_has_seen_can_be_read(whole: Browser, files: str, tmp_path: Path, dark: bool) -> None:
    opened(whole, files, f"incidents = [incident('1', {json.dumps(LABELLED)})];")
    show(whole, "incidents", "")
    whole.until("!!document.querySelector('.row.seen')")
    try:
        whole.picture(tmp_path / "rows.png", dark=dark)
        assert whole.run(TOO_PALE)[0] == []
    finally:
        whole.send("Emulation.setEmulatedMedia", features=[])
        whole.send("Emulation.clearDeviceMetricsOverride")
