"""The page in headless Chromium, over real runs: what a guard sees, and what strangers' texts do not do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from camgraph_test_stages import browser
from camgraph_test_stages.browser import Browser, browsing
from camgraph_test_stages.services import TOKENS, Served, serving_run, with_tokens, write_light

from tools.simulator import CameraSettings, ClipSettings, RtspSimulator

MARKUP = "<img src=x onerror=alert(1)>"
WITH_PICTURES = """
version: 1
name: shown
camera_defaults: {{loop: true, realtime: true, url: cam.mp4}}
cameras:
  hall: {{}}
  yard: {{}}
stages:
{people}
  actions:
    use: rules
    from: tracks
    with: {{rules: [{{id: somebody_there, when: score > 0.3, hold: 0.2s, about: "MARKUP"}}]}}
  footage: {{use: sink_footage, from: actions, with: {{path: footage, before_s: 1, after_s: 1}}}}
  page: {{use: serve, from: events, with: {{address: "127.0.0.1:{port}"{more}}}}}
""".replace("MARKUP", MARKUP)
LIVE = """
version: 1
name: live
cameras:
  door: {{frames: 1000000, pace_ms: 20, live: true, state_from: door.state}}
  gate: {{frames: 1000000, pace_ms: 20, live: true}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src, with: {{every: 20}}}}
  page: {{use: serve, from: events, with: {{address: "127.0.0.1:{port}"{more}}}}}
"""

pytestmark = pytest.mark.skipif(browser.program() is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("p")
    write_light(folder)
    with serving_run(folder, WITH_PICTURES, more=with_tokens()) as run:
        yield run


def logged_in(page: Browser, served: Served, role: str) -> None:
    """Open the page, and log in as somebody with that role."""
    page.open(f"http://127.0.0.1:{served.port}/")
    page.until("!!document.getElementById('token') || !!document.querySelector('.tile')")
    page.run("fetch('/logout', {method: 'POST'}).then(() => true)")
    page.open(f"http://127.0.0.1:{served.port}/?{role}")
    page.until("!!document.getElementById('token')")
    page.errors.clear()  # a page that was open asked for a picture after the logout
    page.run(f"document.getElementById('token').value = {TOKENS[role]!r}")
    page.run("document.querySelector('.login button').click()")
    page.until("document.querySelectorAll('.tile').length === 2")


def test_who_has_no_token_sees_nothing(page: Browser, served: Served) -> None:
    page.open(f"http://127.0.0.1:{served.port}/#/incidents")
    page.until("document.body.innerText.includes('Who is looking?')")
    page.run("document.getElementById('token').value = 'a-wrong-token-of-nobody'")
    page.run("document.querySelector('.login button').click()")
    page.until("document.body.innerText.includes('This token is not known.')")
    assert "hall" not in page.text()


def test_who_types_a_token_is_not_disturbed(page: Browser, served: Served) -> None:
    """The token of a page that is open has been changed; the page still looks when it comes into sight again."""
    logged_in(page, served, "viewer")
    page.run("fetch('/logout', {method: 'POST'}).then(() => true)")
    page.until("!!document.getElementById('token')")
    page.run("document.getElementById('token').value = 'half of it'")
    looks = "performance.getEntriesByType('resource').filter((one) => one.name.endsWith('/api/status')).length"
    before = page.run(looks)
    page.run("document.dispatchEvent(new Event('visibilitychange'))")
    page.until(f"{looks} > {before}")
    page.until("!document.querySelector('.tile') && document.getElementById('token').value === 'half of it'")


def test_pictures_move_and_an_incident_comes_by_itself(page: Browser, served: Served) -> None:
    logged_in(page, served, "viewer")
    page.until("document.querySelectorAll('.tile img').length === 2")
    first = page.run("document.querySelector('.tile img').src")
    page.until(f"document.querySelector('.tile img').src !== {first!r}")
    page.until("!!document.querySelector('.tile.alarm')")
    assert "Somebody there: still going on" in page.text()
    page.until("/^[12] incidents? going on: /.test(document.getElementById('verdict').textContent)")
    page.until("document.getElementById('verdict').textContent === 'All is well: 2 cameras'")


def test_a_clip_plays_and_tells_why(page: Browser, served: Served) -> None:
    logged_in(page, served, "viewer")
    page.run("location.hash = '#/incidents'")
    over = "[...document.querySelectorAll('.row')].find((row) => row.innerText.includes('lasted'))"
    page.until(f"!!{over}")
    page.run(f"{over}.click()")
    page.until("!!document.querySelector('video')")
    page.run("document.querySelector('video').play().then(() => true)")
    page.until("document.querySelector('video').currentTime > 0.2")
    text = page.text()
    assert "score > 0.3: 0.9 against 0.3" in text
    assert MARKUP in text, "the words of a rule are words"
    assert "False alarm" not in text, "a viewer does not judge"
    assert page.errors == []


def test_an_operator_says_what_it_was(page: Browser, served: Served) -> None:
    logged_in(page, served, "operator")
    page.run("location.hash = '#/incidents'")
    page.until("!!document.querySelector('.row')")
    page.run("document.querySelector('.row').click()")
    button = "[...document.querySelectorAll('button')].find((one) => one.textContent === 'False alarm')"
    page.until(f"!!{button}")
    page.run(f"{button}.click()")
    page.until(f"{button}.getAttribute('aria-pressed') === 'true'")
    assert "False alarm, operator, today" in page.text()


DRAWN = """(() => {
    const canvas = document.querySelector('canvas.over');
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    return pixels.some((value, n) => n % 4 === 3 && value > 0);
})()"""


def test_a_live_camera_shows_people_where_they_are(page: Browser, served: Served, tmp_path: Path) -> None:
    logged_in(page, served, "viewer")
    page.run("location.hash = '#/camera/hall'")
    page.until("!!document.querySelector('video') && document.querySelector('video').currentTime > 0.3")
    page.until(DRAWN)
    page.run("document.getElementById('draw').click()")
    page.until(f"!({DRAWN})")
    page.run("document.getElementById('draw').click()")
    page.until(DRAWN)
    page.run("location.hash = '#/'")
    page.until("!document.querySelector('video')")
    assert [error for error in page.errors if "live.mp4" not in error] == []


def test_who_cannot_play_the_video_sees_pictures_a_few_a_second(page: Browser, served: Served, tmp_path: Path) -> None:
    logged_in(page, served, "viewer")
    page.run("MediaSource.isTypeSupported = () => false")
    page.run("location.hash = '#/camera/yard'")
    page.until("document.querySelector('.live .bar').innerText.includes('Live, a few pictures a second: this browser')")
    first = page.run("document.querySelector('img.moving').src")
    page.until(f"document.querySelector('img.moving').src !== {first!r}")
    page.until("document.querySelector('img.moving').naturalWidth === 192")  # 0 while the next one is decoded
    assert page.run("!document.querySelector('video') && !document.querySelector('.live .still')")
    page.until(DRAWN)
    page.picture(tmp_path / "pictures.png")
    page.run("document.getElementById('draw').click()")
    page.until(f"!({DRAWN})")
    page.run("document.getElementById('draw').click()")
    page.run("location.hash = '#/'")
    page.until("!document.querySelector('.live')")
    assert [error for error in page.errors if "live.mp4" not in error and "mjpeg" not in error] == []
    page.open("about:blank")


def test_an_admin_draws_a_zone_that_the_rules_then_know(page: Browser, served: Served, tmp_path: Path) -> None:
    logged_in(page, served, "admin")
    page.run("location.hash = '#/camera/hall'")
    page.until("!!document.querySelector('video') && document.querySelector('video').currentTime > 0.1")
    button = "[...document.querySelectorAll('button')].find((one) => one.textContent === '{}')"
    page.run(f"{button.format('Draw zones and lines')}.click()")
    page.until("document.querySelectorAll('#shape option').length === 2")
    assert page.run(f"{button.format('Save')}.disabled")
    page.run("document.getElementById('shape-name').value = 'by_the_door'")
    click = """(() => {{
        const board = document.querySelector('.board'), box = board.getBoundingClientRect();
        const place = {{clientX: box.left + {0} * box.width, clientY: box.top + {1} * box.height}};
        board.dispatchEvent(new MouseEvent('click', place));
    }})()"""
    for corner in ((0.1, 0.1), (0.9, 0.1), (0.9, 1.0)):
        page.run(click.format(*corner))
    page.run("document.querySelectorAll('.board circle')[0].focus()")
    before = page.run("parseFloat(document.activeElement.getAttribute('cx'))")
    page.press("ArrowRight")
    page.until(f"parseFloat(document.activeElement.getAttribute('cx')) > {before} + 0.9")
    page.run(f"{button.format('What would change?')}.click()")
    page.until("document.querySelector('.diff').innerText.includes('by_the_door: {hall: [[0.1')")
    assert "by_the_door" not in (served.folder / "graph.yaml").read_text()
    page.run(f"{button.format('Save')}.click()")
    page.until("document.body.innerText.includes('Saved.')")
    drawn = r"by_the_door: {hall: \[(\[[0-9.]+, [0-9.]+\](, )?){3}\]}"
    assert re.search(drawn, (served.folder / "graph.yaml").read_text())
    page.until("document.getElementById('shape').value === 'zone/by_the_door'")
    page.until("document.body.innerText.includes('in it now')")
    page.picture(tmp_path / "editor.png")
    page.run(f"{button.format('Close')}.click()")
    page.until("!document.querySelector('.board')")
    assert [error for error in page.errors if "live.mp4" not in error] == []


def test_a_frozen_picture_does_not_look_live(page: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder: Path = tmp_path_factory.mktemp("f")
    write_light(folder)
    cameras = [CameraSettings(name="door", clip=ClipSettings(path=str(folder / "cam.mp4")))]
    with RtspSimulator(cameras) as simulator:
        door = simulator.camera("door")
        graph = WITH_PICTURES.replace("loop: true, realtime: true, url: cam.mp4", f'url: "{door.url}"')
        with serving_run(folder, graph) as served:
            page.open(f"http://127.0.0.1:{served.port}/#/camera/hall")
            page.until("document.querySelector('.live')?.innerText.includes('Live')")
            door.refuse()
            door.cut()
            page.until("document.querySelector('.live').innerText.includes('old: nothing comes from the camera')")
            assert page.run("document.querySelector('.picture').classList.contains('stale')")
            door.heal()
            page.until("/\\bLive\\b/.test(document.querySelector('.live').innerText)")
            page.until("!document.querySelector('.picture').classList.contains('stale')")


def test_the_keyboard_suffices(page: Browser, served: Served) -> None:
    logged_in(page, served, "viewer")
    page.run("document.getElementById('main').focus()")
    page.press("ArrowDown")
    page.until("document.activeElement.classList.contains('tile')")
    page.run("document.activeElement.click()")
    page.until("location.hash.startsWith('#/camera/') && document.body.innerText.includes('What happened here')")
    page.press("Escape")
    page.until("!location.hash.startsWith('#/camera/')")


COUNTED = """
const count = (step) => sessionStorage.setItem("open", Number(sessionStorage.getItem("open")) + step);
window.EventSource = class extends EventSource {
  constructor(url) { super(url); count(1); }
  close() { super.close(); count(-1); }
};
"""


def test_a_page_that_was_left_keeps_no_connection(page: Browser, served: Served) -> None:
    """A browser has six to a host, and keeps pages that were left."""
    logged_in(page, served, "viewer")
    counting = page.send("Page.addScriptToEvaluateOnNewDocument", source=COUNTED)
    for turn in range(8):
        page.open(f"http://127.0.0.1:{served.port}/?turn={turn}")
        page.until("document.querySelectorAll('.tile img').length === 2")
        page.until("sessionStorage.getItem('open') === '1'")
    page.run("history.back()")
    page.until("location.search === '?turn=6' && document.querySelectorAll('.tile img').length === 2")
    page.until("sessionStorage.getItem('open') === '1'")
    page.send("Page.removeScriptToEvaluateOnNewDocument", identifier=counting["identifier"])


def test_nothing_is_asked_of_any_other_host(page: Browser, served: Served) -> None:
    page.asked.clear()
    logged_in(page, served, "viewer")
    page.run("location.hash = '#/health'")
    page.until("!!document.querySelector('.plot')")
    own = (f"http://127.0.0.1:{served.port}/", f"blob:http://127.0.0.1:{served.port}/", "data:", "about:")
    assert len(page.asked) > 20
    assert [url for url in page.asked if not url.startswith(own)] == []
    assert page.errors == []


def test_a_lost_camera_is_told_in_words(page: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder: Path = tmp_path_factory.mktemp("l")
    (folder / "door.state").write_text(f"lost {MARKUP}")
    with serving_run(folder, LIVE) as served:
        page.errors.clear()
        page.open(f"http://127.0.0.1:{served.port}/")
        page.until("document.body.innerText.includes('not reachable')")
        page.until("document.getElementById('verdict').textContent === '1 of 2 cameras without a picture'")
        page.run("location.hash = '#/camera/door'")
        page.until(f"document.body.innerText.includes({MARKUP!r})")
        (folder / "door.state").write_text("live")
        page.until("document.getElementById('verdict').textContent.startsWith('All is well')")
        # There are no pictures, no video and no people in this graph; the browser notes that as errors of the network.
        absent = ("picture.jpg", "live.mp4", "/people")
        assert [error for error in page.errors if not any(path in error for path in absent)] == []
    page.until("document.body.innerText.includes('camgraph does not answer')")
