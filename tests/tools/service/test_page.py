"""The page in headless Chromium, over real runs: what a guard sees, and what strangers' texts do not do."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from camgraph_test_stages import browser
from camgraph_test_stages.browser import Browser, browsing
from camgraph_test_stages.contrast import TOO_PALE
from camgraph_test_stages.services import TOKENS, Served, serving_run, with_tokens, write_light
from camgraph_test_stages.waiting import until

from camgraph.tools.lab.blinking import write_clip
from camgraph.tools.lab.broker_servers import free_port
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

MARKUP = "<img src=x onerror=alert(1)>"
WITH_PICTURES = """
version: 1
name: shown
processes: compact
hang_s: 600
camera_defaults: {{loop: true, realtime: true, url: cam.mp4}}
cameras:
  hall: {{}}
  yard: {{url: H265.mp4}}
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
    # Long enough that a slow browser, too, sees somebody before a file begins again.
    write_clip(folder / "cam.mp4", periods=3)
    write_clip(folder / "H265.mp4", codec="libx265", periods=3)
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


NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location /cameras/ {{
      proxy_pass http://127.0.0.1:{behind}/;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""


@contextmanager
def nginx(folder: Path, behind: int) -> Iterator[int]:
    """nginx with the service below /cameras/, as docs/service.md describes it; its port."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if program is None:
        pytest.skip("nginx is not installed")
    port = free_port()
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, behind=behind))
    proxy = subprocess.Popen([program, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log"])
    try:
        until(lambda: (folder / "nginx.pid").exists() or proxy.poll() is not None, 60.0, every_s=0.05)
        assert proxy.poll() is None, (folder / "error.log").read_text()
        yield port
    finally:
        proxy.terminate()
        proxy.wait(60)


def test_the_page_works_below_a_path_of_a_proxy(page: Browser, served: Served, tmp_path: Path) -> None:
    with nginx(tmp_path, served.port) as port:
        page.open(f"http://127.0.0.1:{port}/cameras")
        page.until("location.pathname === '/cameras/' && !!document.getElementById('token')")
        page.errors.clear()
        page.run(f"document.getElementById('token').value = {TOKENS['operator']!r}")
        page.run("document.querySelector('.login button').click()")
        page.until("document.querySelectorAll('.tile img').length === 2")
        page.run("location.hash = '#/incidents'")
        page.until(f"!!{OVER.format('hall')}")
        page.until("[...document.querySelectorAll('.row img')].some((one) => one.naturalWidth > 0)")
        page.run(f"{OVER.format('hall')}.click()")
        page.until("!!document.querySelector('video')")
        page.run("document.querySelector('video').play().then(() => true)")
        page.until("document.querySelector('video').currentTime > 0.2")
        entries = "performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)"
        assert page.run(f"{entries}.filter((path) => !path.startsWith('/cameras/')).join()") == ""
        assert page.errors == []
        page.run("document.getElementById('logout').click()")
        page.until("!!document.getElementById('token')")
        page.open("about:blank")


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
    page.until(f"document.querySelector('.tile img')?.src !== {first!r}")
    page.until("!!document.querySelector('.tile.alarm')")
    assert "Somebody there: still going on" in page.text()
    page.until("/^[12] incidents? going on: /.test(document.getElementById('verdict').textContent)")
    page.until("document.getElementById('verdict').textContent === 'All is well: 2 cameras'")


OVER = (
    "[...document.querySelectorAll('.row')]"
    ".find((row) => /{}/.test(row.innerText) && /lasted|seen for/.test(row.innerText))"
)


def test_a_clip_plays_and_tells_why(page: Browser, served: Served) -> None:
    logged_in(page, served, "viewer")
    page.run("location.hash = '#/incidents'")
    page.until(f"!!{OVER.format('hall')}")
    page.run(f"{OVER.format('hall')}.click()")
    page.until("!!document.querySelector('video')")
    page.run("document.querySelector('video').play().then(() => true)")
    page.until("document.querySelector('video').currentTime > 0.2")
    text = page.text()
    assert "How sure the model is that it is a person: 90%, and more than 30% is needed" in text
    assert "score > 0.3: 0.9 against 0.3" not in text, "that is for those who wrote the rule"
    page.run("document.querySelector('details').open = true")
    assert "score > 0.3: 0.9 against 0.3" in page.text()
    assert MARKUP in text, "the words of a rule are words"
    assert "False alarm" not in text, "a viewer does not judge"
    assert page.errors == []


def test_a_clip_that_this_browser_cannot_play_can_be_had(page: Browser, served: Served) -> None:
    logged_in(page, served, "viewer")
    page.run("location.hash = '#/incidents'")
    page.until(f"!!{OVER.format('yard')}")
    page.run(f"{OVER.format('yard')}.click()")
    page.until("document.body.innerText.includes('This browser cannot play the clip.')")
    assert page.run("!document.querySelector('video')")
    page.until("document.querySelector('.split img.still')?.naturalWidth > 0")
    link = "document.querySelector('a[download]')"
    assert page.run(f"fetch({link}.href).then((one) => one.headers.get('Content-Type'))") == "video/mp4"
    assert page.run(f"/^yard .*[.]mp4$/.test({link}.download) && !{link}.download.includes(':')")


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
    seen = button.replace("False alarm", "Seen")
    page.run(f"{seen}.click()")
    page.until(f"{seen}.getAttribute('aria-pressed') === 'true'")
    assert page.run(f"{button}.getAttribute('aria-pressed')") == "true", "who has seen it does not take that back"


DRAWN = """(() => {
    const canvas = document.querySelector('canvas.over');
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    return pixels.some((value, n) => n % 4 === 3 && value > 0);
})()"""


def test_a_live_camera_shows_people_where_they_are(page: Browser, served: Served, tmp_path: Path) -> None:
    logged_in(page, served, "viewer")
    page.run("location.hash = '#/camera/hall'")
    page.until("!!document.querySelector('video') && document.querySelector('video').currentTime > 0.3")
    first = page.run("document.querySelector('video').src")
    page.until(f"![undefined, '', {first!r}].includes(document.querySelector('video')?.src)")
    page.until(DRAWN)  # a file that begins again is watched from its beginning
    page.run("document.getElementById('draw').click()")
    page.until(f"!({DRAWN})")
    page.run("document.getElementById('draw').click()")
    page.until(DRAWN)
    page.run("location.hash = '#/'")
    page.until("!document.querySelector('video')")
    assert [error for error in page.errors if "live.mp4" not in error] == []


def test_who_cannot_play_the_video_sees_pictures_a_few_a_second(page: Browser, served: Served, tmp_path: Path) -> None:
    logged_in(page, served, "viewer")
    assert not page.run("MediaSource.isTypeSupported('video/mp4; codecs=\"hvc1.1.6.L30.90\"')"), "it plays H.265"
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


CLICK = """(() => {{
    const board = document.querySelector('.board'), box = board.getBoundingClientRect();
    const place = {{clientX: box.left + {0} * box.width, clientY: box.top + {1} * box.height}};
    board.dispatchEvent(new MouseEvent('click', place));
}})()"""


CHOOSE = """(() => {{
    const which = document.getElementById('shape');
    which.value = '{}';
    which.dispatchEvent(new Event('change'));
}})()"""


def test_an_admin_draws_a_zone_that_the_rules_then_know(page: Browser, served: Served, tmp_path: Path) -> None:
    logged_in(page, served, "admin")
    page.run("location.hash = '#/camera/hall'")
    page.until("!!document.querySelector('video') && document.querySelector('video').currentTime > 0.1")
    button = "[...document.querySelectorAll('button')].find((one) => one.textContent === '{}')"
    page.run(f"{button.format('Draw zones and lines')}.click()")
    page.until("document.querySelectorAll('#shape option').length === 2")
    assert page.run(f"{button.format('Save')}.disabled")
    page.run("document.getElementById('shape-name').value = ' by the  door'")
    for corner in ((0.1, 0.1), (0.9, 0.1), (0.9, 1.0), (0.1, 1.0)):
        page.run(CLICK.format(*corner))
    page.run("document.querySelectorAll('.board circle')[0].focus()")
    before = page.run("parseFloat(document.activeElement.getAttribute('cx'))")
    page.press("ArrowRight")
    page.until(f"parseFloat(document.activeElement.getAttribute('cx')) > {before} + 0.9")
    page.run(f"{button.format('What would change?')}.click()")
    page.until("document.querySelector('.diff').innerText.includes('by_the_door: {hall: [[0.1')")
    assert "by_the_door" not in (served.folder / "graph.yaml").read_text()
    page.run(f"{button.format('Save')}.click()")
    page.until("document.body.innerText.includes('Saved.')")
    drawn = r"by_the_door: {hall: \[(\[[0-9.]+, [0-9.]+\](, )?){4}\]}"
    assert re.search(drawn, (served.folder / "graph.yaml").read_text())
    page.until("document.getElementById('shape').value === 'zone/by_the_door'")
    page.until("document.body.innerText.includes('1 person in it now. The rules say: somebody there.')")
    page.run(CHOOSE.format("line/"))
    for corner in ((0.1, 0.5), (0.9, 0.5)):
        page.run(CLICK.format(*corner))
    page.until("document.body.innerText.includes('0 people went to the right of it, and 0 to the left')")
    page.run("window.confirm = () => true")
    page.picture(tmp_path / "editor.png")
    page.run(f"{button.format('Close')}.click()")
    page.until("!document.querySelector('.board')")
    assert [error for error in page.errors if "live.mp4" not in error] == []


@pytest.mark.lab
def test_a_frozen_picture_does_not_look_live(page: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder: Path = tmp_path_factory.mktemp("f")
    write_light(folder)
    cameras = [CameraSettings(name="door", clip=ClipSettings(path=str(folder / "cam.mp4")))]
    with RtspSimulator(cameras) as simulator:
        door = simulator.camera("door")
        graph = WITH_PICTURES.replace("loop: true, realtime: true, url: cam.mp4", f'url: "{door.url}"')
        graph = graph.replace("{{url: H265.mp4}}", "{{}}")
        with serving_run(folder, graph) as served:
            page.open(f"http://127.0.0.1:{served.port}/#/camera/hall")
            page.until("document.querySelector('.live')?.innerText.includes('Live')")
            door.refuse()
            door.cut()
            page.until("document.querySelector('.live').innerText.includes('old: nothing comes from the camera')")
            assert page.run("document.querySelector('.picture').classList.contains('stale')")
            page.until("/not reachable|no picture/.test(document.querySelector('.facts').innerText)")
            page.open(f"http://127.0.0.1:{served.port}/?wall#/")  # its stills come anew, and are old all the same
            page.until("[...document.querySelectorAll('.age')].every((age) => / old$/.test(age.innerText))")
            page.open(f"http://127.0.0.1:{served.port}/?again#/camera/hall")
            door.heal()
            page.until("/\\bLive\\b/.test(document.querySelector('.live')?.innerText)")
            page.until("!document.querySelector('.picture').classList.contains('stale')")


def frozen(served: Served) -> int:
    """Stop the process of the service, so that it accepts connections and says nothing; its id."""
    pid: int = served.get("/api/status", "viewer").json()["processes"]["page.0"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    return pid


AGES = """(() => {
    window.ages = [];
    const banner = document.getElementById('banner');
    const age = () => banner.textContent.match(/of ([^.]*) ago. This page tries again by itself.$/)?.[1];
    const note = () => age() && ages.push({text: age(), at: performance.now()});
    new MutationObserver(note).observe(banner, {subtree: true, characterData: true, childList: true});
})()"""
"""Each age that the banner tells, and when. Requests fail after 10 s: between two of these it goes on by itself."""


def test_a_service_that_hangs_is_told_and_nothing_looks_like_now(page: Browser, served: Served) -> None:
    logged_in(page, served, "viewer")
    page.until("document.getElementById('verdict').textContent !== ''")
    pid = frozen(served)
    try:
        page.until("document.getElementById('banner').textContent.startsWith('camgraph does not answer.')")
        page.until("!document.getElementById('banner').hidden && document.getElementById('verdict').textContent === ''")
        page.until("Number(getComputedStyle(document.getElementById('main')).opacity) < 0.6")
        page.run(AGES)
        page.until("ages.some(({text, at}, n) => n && text !== ages[n - 1].text && at - ages[n - 1].at < 5000)")
    finally:
        os.kill(pid, signal.SIGCONT)
    page.until("document.getElementById('banner').hidden && document.getElementById('verdict').textContent !== ''")
    page.until("getComputedStyle(document.getElementById('main')).opacity === '1'")
    first = page.until("document.querySelector('.tile img')?.src")
    page.until(f"document.querySelector('.tile img')?.src !== {first!r}")


def test_a_still_tells_how_old_it_is_if_no_newer_one_comes(page: Browser, served: Served) -> None:
    logged_in(page, served, "viewer")
    page.until("document.querySelectorAll('.tile img').length === 2")
    old = "document.querySelectorAll('.holder.old').length"
    page.until(f"{old} === 0")
    page.send("Network.setBlockedURLs", urls=["*/picture.jpg"])
    try:
        page.until(f"{old} === 2")
        assert re.search(r"This picture is 1[5-9] s old|This picture is [2-9]\d s old", page.text())
        assert page.run("document.getElementById('banner').hidden"), "the service answers"
    finally:
        page.send("Network.setBlockedURLs", urls=[])
    page.until(f"{old} === 0")


BUTTON = "[...document.querySelectorAll('button')].find((one) => one.textContent === '{}')"


def every_view(page: Browser) -> Iterator[str]:
    """Open one after the other, as an admin."""
    yield "wall"
    page.run("location.hash = '#/camera/hall'")
    page.until("!!document.querySelector('video') && document.querySelector('video').currentTime > 0.1")
    page.until("document.querySelectorAll('.row').length > 0 && !!document.querySelector('.plot path[d]')")
    yield "camera"
    page.run(f"{BUTTON.format('Draw zones and lines')}.click()")
    page.until("document.querySelectorAll('#shape option').length >= 2")
    page.run(CLICK.format(0.5, 0.5))
    page.run("window.confirm = () => true")
    yield "editor"
    page.run("location.hash = '#/incidents'")
    page.until(f"!!{OVER.format('hall')}")
    yield "incidents"
    page.run(f"{OVER.format('hall')}.click()")
    page.until("!!document.querySelector('.facts details')")
    page.run("document.querySelector('details').open = true")
    yield "incident"
    page.run("location.hash = '#/health'")
    page.until("!!document.querySelector('.plot path[d]') && document.querySelectorAll('tbody tr').length > 3")
    yield "health"


TOO_SMALL = """[...document.querySelectorAll('a, button, select, input, summary, .reach')]
    .map((one) => one.closest('label') || one).map((one) => [one, one.getBoundingClientRect()])
    .filter(([one, {width, height}]) => width && Math.min(width, height) < 40)
    .map(([one, {width, height}]) => `${one.tagName} ${one.textContent} ${width} x ${height}`)"""


def test_each_view_fits_a_phone_and_its_controls_a_finger(page: Browser, served: Served, tmp_path: Path) -> None:
    logged_in(page, served, "admin")
    try:
        for view in every_view(page):
            page.picture(tmp_path / f"{view}.png", width=390, height=844)
            assert page.run("document.documentElement.scrollWidth <= window.innerWidth"), view
            assert page.run("window.innerWidth") == 390, view
            assert page.run(TOO_SMALL) == [], view
    finally:
        page.send("Emulation.clearDeviceMetricsOverride")


@pytest.mark.lab
def test_each_view_is_dark_in_the_dark_and_its_texts_can_be_read(page: Browser, served: Served, tmp_path: Path) -> None:
    logged_in(page, served, "admin")
    try:
        for view in every_view(page):
            for dark in (False, True):
                page.picture(tmp_path / f"{view}.png", dark=dark)
                pale, behind = page.run(TOO_PALE)
                assert pale == [], (view, dark)
                assert (behind < 0.02) == dark, (view, dark)
    finally:
        page.send("Emulation.setEmulatedMedia", features=[])
        page.send("Emulation.clearDeviceMetricsOverride")


def test_health_changes_in_its_place(page: Browser, served: Served) -> None:
    logged_in(page, served, "viewer")
    page.run("location.hash = '#/health'")
    page.until("document.querySelectorAll('tbody tr').length > 3 && !!document.querySelector('.plot path[d]')")
    assert "undefined" not in page.text()
    assert page.run(
        "[...document.querySelectorAll('.along')].every((one) => /^(\\d+:\\d\\d.*){3}$/s.test(one.innerText.trim()))"
    )
    assert page.run("[...document.querySelectorAll('.up')].some((one) => /^\\d+ ms\\s/.test(one.innerText))")
    page.run("window.cells = [...document.querySelectorAll('td')]; window.scrollTo(0, 120)")
    page.run("getSelection().selectAllChildren(document.querySelector('main section p'))")
    chosen = page.run("getSelection().toString()")
    before = page.run("document.querySelector('tbody').innerText")
    page.until(f"document.querySelector('tbody').innerText !== {before!r}")
    assert page.run("cells.filter((one) => !one.isConnected).length") == 0
    assert page.run("window.scrollY") > 60  # browsers keep the place of what is read if a text above it grows
    assert page.run("getSelection().toString()").split(",")[0] == chosen.split(",")[0] != ""


def test_a_drawing_is_not_lost_unasked(page: Browser, served: Served) -> None:
    logged_in(page, served, "admin")
    page.open(f"http://127.0.0.1:{served.port}/?direct#/camera/hall")
    page.until("!!document.querySelector('video') && document.querySelector('video').currentTime > 0.1")
    page.run(f"{BUTTON.format('Draw zones and lines')}.click()")
    page.until("document.querySelectorAll('#shape option').length >= 2")
    page.run(
        "window.asked = []; document.activeElement.blur();"
        "window.confirm = (text) => { asked.push(text); return false; }"
    )
    page.run(CHOOSE.format("zone/"))
    page.run(CLICK.format(0.2, 0.2))
    page.press("Escape")
    page.until("asked.length === 1")
    page.run("location.hash = '#/health'")
    page.until("asked.length === 2 && location.hash === '#/camera/hall'")
    page.run(CHOOSE.format("line/"))
    page.until("asked.length === 3 && document.getElementById('shape').value === 'zone/'")
    assert page.run("document.querySelectorAll('.board .reach').length") == 1
    page.run("window.confirm = () => true")
    page.press("Escape")
    page.until("!document.querySelector('.board') && location.hash === '#/camera/hall'")


def test_escape_never_leaves_the_page(page: Browser, served: Served) -> None:
    logged_in(page, served, "viewer")
    page.open("about:blank")
    page.open(f"http://127.0.0.1:{served.port}/?linked#/camera/hall")
    page.until("document.body.innerText.includes('What happened here')")
    page.press("Escape")
    page.until("location.hash === '#/' && document.querySelectorAll('.tile').length === 2")


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


@pytest.mark.lab
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
    page.open("about:blank")  # the one before still asks a run that has ended
    with serving_run(folder, LIVE) as served:
        page.errors.clear()
        page.open(f"http://127.0.0.1:{served.port}/")
        page.until("document.body.innerText.includes('not reachable')")
        page.until("document.getElementById('verdict').textContent === '1 of 2 cameras without a picture'")
        for view, shows in (("incidents", "h1"), ("camera/gate", ".live")):
            page.run(f"location.hash = '#/{view}'; document.getElementById('verdict').textContent = 'of before'")
            page.until(f"!!document.querySelector('{shows}')")
            page.until("document.getElementById('verdict').textContent === '1 of 2 cameras without a picture'")
        page.run("location.hash = '#/camera/door'")
        page.until(f"document.body.innerText.includes({MARKUP!r})")
        (folder / "door.state").write_text("live")
        page.until("document.getElementById('verdict').textContent.startsWith('All is well')")
        # There are no pictures, no video and no people in this graph; the browser notes that as errors of the network.
        absent = ("picture.jpg", "live.mp4", "/people")
        assert [error for error in page.errors if not any(path in error for path in absent)] == []
    page.until("document.body.innerText.includes('camgraph does not answer')")


HIDDEN = WITH_PICTURES.replace("{{path: footage,", "{{path: footage, look: blurred_faces, clips: false,")
QUIET = re.sub(r"  footage: .*\n", "", WITH_PICTURES).replace("score > 0.3", "score > 0.3 and age > 60min")


def test_who_looks_is_told_why_there_are_no_faces(
    page: Browser, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    folder: Path = tmp_path_factory.mktemp("h")
    write_light(folder)
    write_clip(folder / "H265.mp4", codec="libx265")
    with serving_run(folder, HIDDEN, more=with_tokens()) as served:
        logged_in(page, served, "viewer")
        tile = "Faces are hidden here, so there is no live picture. Pictures of incidents are under Incidents."
        page.until(f"document.querySelectorAll('.tile')[1].innerText.includes({tile!r})")
        page.picture(tmp_path / "wall.png")
        page.run("location.hash = '#/camera/hall'")
        page.until(
            "document.querySelector('.live .bar')?.innerText"
            ".includes('Live video is switched off to protect faces. You see the people as skeletons.')"
        )
        page.until(f"document.querySelector('.picture.black') && {DRAWN}")
        page.picture(tmp_path / "camera.png")
        page.run("location.hash = '#/incidents'")
        page.until(f"!!{OVER.format('hall')}")
        page.run(f"{OVER.format('hall')}.click()")
        page.until("document.querySelector('.split img.still')?.naturalWidth > 0")
        page.picture(tmp_path / "incident.png")
        logged_in(page, served, "admin")
        page.until("document.querySelector('.tile').innerText.includes('look: blurred_faces lets no picture leave')")
        page.run("location.hash = '#/camera/hall'")
        page.until("document.querySelector('.live .bar')?.innerText.includes('set video: true at the stage serve')")
    page.open("about:blank")


def test_a_quiet_night_without_pictures_is_no_fault(
    page: Browser, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    folder: Path = tmp_path_factory.mktemp("b")
    write_light(folder)
    write_clip(folder / "H265.mp4", codec="libx265")
    with serving_run(folder, QUIET, more=with_tokens()) as served:
        logged_in(page, served, "viewer")
        page.until("document.querySelector('.tile').innerText.includes('No pictures are kept here.')")
        page.picture(tmp_path / "wall.png")
        for view in ("incidents", "camera/hall"):
            page.run(f"location.hash = '#/{view}'")
            page.until("document.getElementById('main').innerText.includes('Nothing has happened yet.')")
            who = "No pictures are kept here. The person who set camgraph up can change that."
            assert who in page.text()
            assert "sink_footage" not in page.text()
            page.picture(tmp_path / f"{view[:6]}.png")
        page.open("about:blank")


def test_a_camera_that_was_removed_and_comes_back_moves_again(
    page: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path = tmp_path_factory.mktemp("r")
    write_light(folder)
    clip = ClipSettings(path=str(folder / "cam.mp4"))
    with RtspSimulator([CameraSettings(name="door", clip=clip)]) as simulator:
        url = simulator.camera("door").url
        graph = WITH_PICTURES.replace("loop: true, realtime: true, url: cam.mp4", f'url: "{url}"')
        graph = graph.replace("{{url: H265.mp4}}", "{{}}")
        with serving_run(folder, graph) as served:
            page.open("about:blank")
            counting = page.send("Page.addScriptToEvaluateOnNewDocument", source=COUNTED)
            page.open(f"http://127.0.0.1:{served.port}/?removed#/camera/hall")
            moves = "document.querySelector('video')?.currentTime > 0.3"
            page.until(moves)
            assert page.run("sessionStorage.getItem('open')") == "1"
            assert served.call("DELETE", "/api/cameras/hall").status_code == 202
            page.until("document.getElementById('main').innerText.includes('There is no camera hall any more.')")
            page.until("sessionStorage.getItem('open') === '0' && !document.querySelector('video')")
            assert page.run("!document.querySelector('.live').checkVisibility()")
            again = {"name": "hall", "settings": {"url": url}}
            assert served.call("POST", "/api/cameras", json=again).status_code == 202
            page.until("document.querySelector('.live').checkVisibility()")
            page.until(moves)
            assert "any more" not in page.run("document.getElementById('main').innerText")
            page.send("Page.removeScriptToEvaluateOnNewDocument", identifier=counting["identifier"])
            page.open("about:blank")
