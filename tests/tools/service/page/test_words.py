"""The words of the page in headless Chromium, without a run: its modules are handed the states of cameras."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import av
import pytest
from camgraph_test_stages.browser import Browser

from camgraph.stages.sinks.delivery.event_words import span
from camgraph.stages.video.live.camera_problems import Dropped, camera_problem
from camgraph.stages.video.live.gate.authorization import why_not_answered
from camgraph.stages.video.live.gate.statuses import of_rtsp
from camgraph.stages.video.live.gate.web_answer import served
from camgraph.stages.video.live.gate.web_gate import _no_picture
from camgraph.stages.video.live.no_picture_timeout import NoPictureTimeout

pytestmark = pytest.mark.processes


def camera(state: str = "live", **more: Any) -> dict[str, Any]:
    """One of a status, as the service gives it."""
    quiet = {"why": "", "error": "", "since_s": 20.0, "through_s": 0.1, "fps": 5.0, "losses": 0, "drops": 0}
    return {**quiet, "drops_by_reason": {}, "state": state, **more}


def status(*, troubles: int = 0, **cameras: dict[str, Any]) -> dict[str, Any]:
    bad = troubles or any(one["state"] not in ("live", "paused", "done") for one in cameras.values())
    return {
        "phase": "running",
        "uptime_s": 60.0,
        "memory_mb": 500.0,
        "limit": None,
        "outbox": {},
        "stages": {},
        "health": {"level": "degraded" if bad else "healthy", "reason": "so it is"},
        "troubles": [{"where": f"log{n}", "why": "the disk is full", "since_s": 61.0} for n in range(troubles)],
        "cameras": cameras,
    }


def running(*cameras: str) -> list[dict[str, Any]]:
    """An incident at each camera."""
    return [{"incident": one, "camera": one, "action": "fall", "phase": "running"} for one in cameras]


def state(page: Browser, now: dict[str, Any], incidents: list[dict[str, Any]], role: str = "viewer") -> None:
    """Make it the state that views get, as `state`."""
    given = json.dumps({"status": now, "running": incidents, "incidents": incidents, "me": {"role": role, "name": ""}})
    page.run(
        f"window.state = {given}; state.silences = new page.Silences(); state.silences.update(state.status.cameras)"
    )


def verdict(page: Browser, now: dict[str, Any], *incidents: str) -> str:
    state(page, now, running(*incidents))
    found = page.run("page.verdict(state.status, state.running, state.silences)")
    return f"{found['text']}{' !' if found['isBad'] else ''}"


LOST = camera("lost", through_s=None, since_s=5.0)


def test_an_incident_hides_no_dead_camera_and_no_trouble(page: Browser) -> None:
    fine = {"hall": camera(), "yard": camera()}
    assert verdict(page, status(**fine)) == "All is well: 2 cameras"
    assert verdict(page, status(**fine), "hall") == "1 incident going on: hall !"
    dead = {"hall": camera(), "yard": LOST, "gate": LOST}
    assert verdict(page, status(**dead)) == "2 of 3 cameras without a picture !"
    assert verdict(page, status(**dead), "hall") == "1 incident going on: hall · 2 of 3 cameras without a picture !"
    everything = "1 incident going on: hall · 2 of 3 cameras without a picture · 2 troubles !"
    assert verdict(page, status(**dead, troubles=2), "hall") == everything
    assert verdict(page, status(**fine, troubles=1)) == "Needs attention: 1 trouble !"
    assert verdict(page, {**status(hall=camera("starting")), "phase": "starting"}) == "Starting…"


def test_lost_cameras_come_first_on_the_wall_and_look_so(page: Browser) -> None:
    cameras = {"attic": camera(), "bath": camera("paused"), "hall": camera(), "yard": camera("stalled")}
    state(page, status(**cameras), running("hall"))
    page.run("window.wall = page.wallView(state); wall.update()")
    tiles = page.run("[...wall.element.children].map((one) => [one.querySelector('strong').innerText, one.className])")
    page.run("wall.close()")
    assert tiles == [["hall", "tile alarm"], ["yard", "tile lost"], ["attic", "tile"], ["bath", "tile"]]


def test_a_lost_camera_is_a_trouble_on_health(page: Browser) -> None:
    state(page, status(hall=camera(), yard=camera("lost", why="no route")), [])
    page.run("window.health = page.healthView(state); health.update()")
    lines = page.run(
        "[...health.element.querySelectorAll('ul')[0].children].map((one) => [one.innerText, one.className])"
    )
    assert lines == [["yard: not reachable for 20 s: no route", "bad"]]
    assert page.run("health.element.querySelector('.empty').hidden"), "None."
    page.run("state.status.cameras.yard.state = 'live'; health.update()")
    assert not page.run("health.element.querySelector('.empty').hidden")


def test_nobody_claims_that_an_unseen_incident_goes_on(page: Browser) -> None:
    now = status(hall=camera(), yard=camera("lost", through_s=30.0), gate=LOST, bath=camera("paused", since_s=None))
    state(page, now, running("hall", "yard"))
    hour = page.run("page.clock(new Date(state.silences.known.get('yard')))")
    said = page.run("state.running.map((one) => page.lasted(one, state.silences))")
    assert said == ["still going on", f"not known since {hour}: no picture from this camera"]
    assert page.run("page.lasted({camera: 'removed', phase: 'running'}, state.silences)").startswith("not known: no")
    assert page.run("page.lasted({camera: 'bath', phase: 'running'}, state.silences)").startswith("not known")
    assert page.run("page.lasted({camera: 'yard', phase: 'single'}, state.silences)") == "one moment"
    parts = verdict(page, now, "hall", "yard").split(" · ")
    unknown = f"1 incident not known any more: no picture from yard since {hour}"
    rests = "1 of 4 cameras rests: nothing there is noticed !"
    assert parts == ["1 incident going on: hall", unknown, "2 of 4 cameras without a picture", rests]


def test_cameras_that_rest_are_not_called_well(page: Browser) -> None:
    assert verdict(page, status(hall=camera("paused"), yard=camera("paused"))) == (
        "2 of 2 cameras rest: nothing there is noticed"
    )
    some = status(hall=camera("paused"), yard=camera("done"), gate=camera())
    assert verdict(page, some) == "1 of 3 cameras rests and 1 of 3 cameras has ended: nothing there is noticed"
    assert verdict(page, {**some, "phase": "stopping"}) == "Stopping…"
    assert verdict(page, status()) == "There are no cameras"


def test_nobody_claims_all_is_well_while_no_list_can_be_read(page: Browser) -> None:
    state(page, status(hall=camera(), yard=camera()), running("hall"))
    page.run("state.silences.read(true, 1e12); state.silences.read(false); window.wall = page.wallView(state)")
    hour = page.run("page.clock(new Date(1e12))")
    assert page.run("page.verdict(state.status, state.running, state.silences)") == {
        "text": f"Nobody knows what happens now: the incidents cannot be read since {hour}",
        "isBad": True,
    }
    page.run("wall.update()")
    tiles = page.run(
        "[...wall.element.children].map((one) => [one.className, one.querySelector('.running').innerText])"
    )
    assert tiles == [
        ["tile alarm unread", f"Fall: not known since {hour}: the incidents cannot be read"],
        ["tile unread", "not known whether something happens"],
    ]
    page.run("state.silences.read(true); wall.update()")
    assert page.run("wall.element.querySelectorAll('.unread').length") == 0
    page.run("wall.close()")


def test_the_gravest_of_several_incidents_is_on_the_tile(page: Browser) -> None:
    newest_first = [
        {"incident": str(n), "camera": camera, "action": action, "phase": "running", "severity": severity}
        for n, (camera, action, severity) in enumerate(
            [
                ("hall", "waiting", "info"),
                ("hall", "fall", "alarm"),
                ("hall", "fight", "alarm"),
                ("yard", "running", "warning"),
                ("yard", "waiting", "warning"),
            ]
        )
    ]
    state(page, status(hall=camera(), yard=camera()), newest_first)
    page.run("window.wall = page.wallView(state); wall.update()")
    told = page.run("[...wall.element.querySelectorAll('.running')].map((one) => one.innerText)")
    page.run("wall.close()")
    assert told == ["Fall: still going on (+2)", "Running: still going on (+1)"]


@pytest.mark.parametrize("seconds", [0, 59.6, 60, 61, 754, 3599, 3600, 5400, 5430, 90_000, 200_000])
def test_lengths_are_told_as_in_mails(page: Browser, seconds: float) -> None:
    over = json.dumps({"camera": "hall", "phase": "over", "duration_s": seconds})
    assert page.run(f"page.lasted({over}, new page.Silences())") == f"lasted {span(seconds)}"


def test_how_long_somebody_lay_who_left_the_picture_is_not_known(page: Browser) -> None:
    over = json.dumps({"camera": "hall", "phase": "over", "duration_s": 8, "unseen": True})
    assert page.run(f"page.lasted({over}, new page.Silences())") == "seen for 8 s"


def test_plots_tell_how_old_the_last_value_is(page: Browser) -> None:
    page.run("window.plot = new page.Plot('Age', ' ms', 10, [['p50', 'half', ''], ['p95', 'most', '']])")
    tell = "(p50, p95) => { plot.update({at: [1e9, 1e9 + 2400], every_s: 5, p50, p95}); return plot.now.innerText; }"
    page.run(f"window.tell = {tell}")
    hour = page.run("new Date(1e12).toLocaleTimeString([], {hour: '2-digit', minute: '2-digit'})")
    assert page.run("tell([3, 4], [7, 8])") == "Now: half 4 ms, most 8 ms"
    old = "plot.update({at: [1e9], every_s: 5, p50: [3], p95: [7]}, false), plot.now.innerText"
    assert page.run(old) == f"Last at {hour}: half 3 ms, most 7 ms", "asked again, and not answered"
    assert page.run("tell([3, null], [7, null])") == f"Last at {hour}: half 3 ms, most 7 ms"
    assert page.run("tell([3, 4], [7, null])") == f"Now: half 4 ms. Last at {hour}: most 7 ms"
    assert page.run("tell([null, null], [null, null])") == "Nothing is known yet."


def test_the_time_of_a_silence_does_not_flicker(page: Browser) -> None:
    page.run("window.quiet = new page.Silences(); window.lost = (s) => ({yard: {state: 'lost', through_s: s}})")
    page.run("quiet.update(lost(30), 100000); window.first = quiet.since('yard')")
    assert page.run("quiet.update(lost(39), 111900); quiet.known.get('yard')") == 70_000
    assert page.run("quiet.update(lost(2), 150000); quiet.known.get('yard')") == 148_000, "it was there meanwhile"
    assert not page.run("quiet.update({yard: {state: 'live'}}, 151000); quiet.has('yard')")


def test_the_banner_speaks_to_a_guard(page: Browser) -> None:
    silent = "the run night does not answer within 4 s: try again, and look at its log"
    assert page.run(f"page.refusal(new page.Refused(503, {silent!r}))") == "camgraph does not say how the cameras are."
    assert page.run("page.refusal(new page.Unreachable('no'))") == "camgraph does not answer."
    assert page.run("page.refusal(new page.Refused(404, 'no run called night any more'))") == (
        "No run called night any more."
    )


def sight(page: Browser, now: dict[str, Any], came_s: float | None, told_s: float = 1.0) -> str:
    """State, kind, dimmed or not, caption; the service said it and the last packet came so many seconds ago."""
    came_ms = json.dumps(came_s and 1000 * came_s)
    one = page.run(f"page.sightOf({json.dumps(now)}, {1000 * told_s}, {came_ms})")
    return f"{one['text']} | {one['kind']}{' dimmed' if one['isOld'] else ''} | {one['caption']}"


def test_state_caption_and_dimming_never_contradict(page: Browser) -> None:
    assert sight(page, camera(), 0.1) == "live |  | "
    old = "This picture is 6 s old: nothing comes from the camera."
    assert sight(page, camera(), 6.0) == f"no picture for 6 s | bad dimmed | {old}"
    lost = camera("lost", since_s=5.0)
    assert sight(page, lost, 6.0) == f"not reachable for 6 s | bad dimmed | {old}"
    assert sight(page, camera("lost", since_s=1.0), 2.0).startswith("not reachable for 2 s | bad dimmed | "), "at once"
    assert sight(page, camera("lost", since_s=30.0), 0.1) == (
        "a picture comes, but is not looked at | bad | Live, but not looked at: nothing that happens here is noticed."
    )
    assert sight(page, camera("paused", since_s=None), 0.1).startswith("rests | rests dimmed | ")
    assert sight(page, lost, None) == "not reachable for 6 s | bad | ", "the still tells its age by itself"


def test_a_video_shows_that_one_judgement(page: Browser) -> None:
    page.run("window.live = new page.Live('hall', (sight) => { window.judged = sight; })")
    film = "{isPlaying: true, came: performance.now() - 1000 * seconds, words: 'Live', close() {}}"
    shows = f"(camera, seconds) => {{ live.film = {film}; live.update(camera); return shown(); }}"
    page.run("window.shown = () => [live.picture.classList.contains('stale'), live.note.textContent, judged.text]")
    page.run(f"window.shows = {shows}")
    try:
        assert page.run(f"shows({json.dumps(camera())}, 0.1)") == [False, "Live", "live"]
        lost = json.dumps(camera("lost", since_s=5.0))
        old = "This picture is 6 s old: nothing comes from the camera."
        assert page.run(f"shows({lost}, 6)") == [True, old, "not reachable for 5 s"]
        assert page.run(f"shows({json.dumps(camera())}, 6)") == [True, old, "no picture for 6 s"]
    finally:
        page.run("live.close()")


SHAPES = """
window.sent = [];
window.asked = [];
window.confirm = (text) => { asked.push(text); return false; };
window.answers = { stages: [{ stage: "actions", file: "rules.yaml", version: "1", line: {},
  zone: { bed: { for: "camera", points: [[0, 0], [0.5, 0], [0.5, 0.5], [0, 0.5]] },
          door: { for: "all", points: [[1, 1], [9, 1], [9, 9]] } } }], problems: ["more: cannot be read"] };
window.before = window.fetch;
window.fetch = async (path, { method, body }) => {
  if (method === "POST") sent.push(JSON.parse(body));
  const isWrong = method === "POST" && sent.at(-1).name === "wrong";
  const answer = method === "POST" ? { diff: "+ bed", saved: false } : answers;
  return new Response(JSON.stringify(isWrong ? { error: "no such thing" } : answer), { status: isWrong ? 400 : 200 });
};
window.live = { picture: document.createElement("div"), people: null };
window.editor = new page.ShapeEditor("hall", live, () => {});
window.choose = (value) => { editor.which.value = value; editor.which.dispatchEvent(new Event("change")); };
window.corners = () => live.picture.querySelectorAll(".reach").length;
"""


@pytest.fixture
def editor(page: Browser) -> Iterator[Browser]:
    """The editor of zones is open, and over a service that keeps what it is sent in `sent`."""
    page.run(f"(() => {{ {SHAPES} }})()")
    page.until("editor.which.options.length === 4")
    yield page
    page.run("editor.close(); window.fetch = before")


def test_the_editor_opens_on_a_zone_that_is_there(editor: Browser) -> None:
    assert editor.run("[editor.which.value, editor.name.value, corners()]") == ["zone/bed", "bed", 4]
    assert editor.run("editor.message.textContent") == "more: cannot be read"


def test_a_zone_in_pixels_is_shown_once_their_size_is_known(editor: Browser) -> None:
    editor.run("choose('zone/door')")
    assert editor.run("corners()") == 0
    editor.run("live.people = {shapes: {size: [10, 10]}, newest: () => null, frames: () => []}")
    editor.until("corners() === 3 && editor.message.textContent === ''")


def test_a_drawing_is_dropped_for_another_shape_only_if_meant(editor: Browser) -> None:
    editor.run("editor.add([0.9, 0.9]); choose('zone/')")
    assert editor.run("[asked.length, editor.which.value, corners()]") == [1, "zone/bed", 5]
    editor.run("window.confirm = () => true; choose('zone/')")
    assert editor.run("[editor.which.value, corners()]") == ["zone/", 0]


def test_a_new_zone_gets_a_name_of_its_own(editor: Browser) -> None:
    editor.run("choose('zone/'); [[0, 0], [1, 0], [1, 1]].forEach((point) => editor.add(point))")
    editor.run("editor.send(false)")
    assert editor.run("[editor.message.textContent, sent.length]") == ["Give it a name first.", 0]
    editor.run("editor.name.value = ' Bett am Fenster '; editor.send(false)")
    assert editor.run("sent[0].name") == editor.run("editor.name.value") == "Bett_am_Fenster"
    assert not editor.run("editor.difference.hidden")
    editor.run("editor.name.value = 'wrong'; editor.send(false)")
    assert editor.run("[editor.message.textContent, editor.difference.hidden]") == ["no such thing", True]
    editor.run("editor.name.value = 'bed'; editor.send(true)")
    assert editor.run("[asked, sent.length]") == [["bed is there already: replace it?"], 2]
    editor.run("window.confirm = () => true; editor.send(true)")
    assert editor.run("[sent[2].name, sent[2].save]") == ["bed", True]


def test_a_click_that_sets_no_corner_changes_nothing(editor: Browser) -> None:
    editor.run("choose('line/'); editor.undo()")
    assert not editor.run("editor.isChanged")
    editor.run("editor.add([0, 0]); editor.add([1, 1]); editor.isChanged = false; editor.add([0.5, 0.5])")
    assert editor.run("[corners(), editor.isChanged]") == [2, False]


KEY = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: '%s', bubbles: true, cancelable: true}))"
FOCUSED = "document.activeElement.getAttribute('aria-label')"


def test_a_zone_is_drawn_by_the_keyboard_alone(editor: Browser) -> None:
    editor.run("document.body.append(live.picture); choose('zone/'); editor.board.focus()")
    assert editor.run("[editor.board.getAttribute('role'), !!editor.board.getAttribute('aria-label')]") == [
        "application",
        True,
    ]
    for arrow in ("ArrowLeft", "ArrowRight", "ArrowUp"):
        editor.run(KEY % "Enter")
        editor.run(KEY % arrow)
    assert editor.run("editor.points") == [[0.49, 0.5], [0.51, 0.5], [0.5, 0.49]]
    assert editor.run(FOCUSED) == "Corner 3"
    editor.run(KEY % "Delete")
    assert editor.run(FOCUSED) == "Corner 2"
    editor.run("editor.handles.querySelector('.reach').focus()")
    editor.run(KEY % "Delete")
    assert editor.run(FOCUSED) == "Corner 1"
    editor.run(KEY % "Delete")
    assert editor.run("document.activeElement === editor.board")
    editor.run("live.picture.remove()")


WRONG_PASSWORD = (
    "the camera refuses the user or password of `url` (rtsp://***@10.0.0.11/main): correct them there "
    "(in a password / # ? @ : % are written percent-encoded), or the rights of this user in the camera"
)


def plain(page: Browser, text: str, *, is_admin: bool = False) -> str:
    return str(page.run(f"page.plain({text!r}, {json.dumps(is_admin)})"))


def test_reasons_are_in_the_words_of_a_guard(page: Browser) -> None:
    assert plain(page, "no packets of bad are kept") == "no picture yet"
    assert plain(page, "its process died: no sign of life for 10 s (hang_s)") == (
        "the program that reads it did not answer for 10 s"
    )
    assert plain(page, "the decoder is slow: `max_fps` would help") == "the decoder is slow: max_fps would help"
    health = "2 of 3 cameras without frames: a stalled for 6 s (no frame for 6 s), b lost for 26 s (no answer)"
    assert plain(page, health) == (
        "2 of 3 cameras without a picture: a no picture for 6 s, b not reachable for 26 s (no answer)"
    )
    told = "the camera refuses the user or password: tell the person who set camgraph up"
    assert plain(page, WRONG_PASSWORD) == told
    assert "percent-encoded" in plain(page, WRONG_PASSWORD, is_admin=True)
    gone = "the camera has no stream at the path of `url` (rtsp://10.0.0.11/x): correct it there"
    assert plain(page, gone) == "the camera has no stream at the path: tell the person who set camgraph up"


def refused(begin: bytes, content_type: str) -> str:
    with pytest.raises(Dropped) as problem:
        served(content_type, begin)
    return str(problem.value)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (refused(b"<html>", "text/html"), "it answers with a web page (text/html) instead of video"),
        (
            refused(b"\x89PNG", "image/png"),
            "it answers with a picture (image/png): camgraph reads pictures of cameras as JPEG alone",
        ),
        (str(_no_picture(300)), "there is no picture (JPEG) in the 300 bytes that it sent"),
        (f"it answers SETUP with {of_rtsp(453, '')}", "it answers SETUP with 453 Not Enough Bandwidth"),
        (
            why_not_answered(["Negotiate"]),
            "it asks for a kind of login that camgraph does not know: Negotiate",
        ),
        (
            camera_problem(av.InvalidDataError(1, "x"), "rtsp://cam/", 0.0, 5.0).why,
            "rtsp://cam/: what it sends cannot be read as video",
        ),
        (
            "it redirects to rtsp://b/, which is another host or port: if that is right, write that address in "
            "`url`, or `redirects: follow`",
            "it redirects to rtsp://b/, which is another host or port",
        ),
        (
            "it does not send over tcp (461 Unsupported Transport): write `transport: udp` for this camera",
            "it does not send over tcp (461 Unsupported Transport)",
        ),
        (
            "its video is in the format vc9 that the FFmpeg of this installation cannot decode: choose another codec "
            "in the camera, such as H.264 or H.265",
            "its video is in the format vc9 that the FFmpeg of this installation cannot decode",
        ),
    ],
)
def test_guard_is_not_told_to_change_settings(page: Browser, reason: str, told: str) -> None:
    assert plain(page, reason) == f"{told}: tell the person who set camgraph up"
    assert plain(page, f"a gone for 6 s ({reason}), b") == (
        f"a answers, but sends no picture for 6 s ({told}: tell the person who set camgraph up), b"
    )
    assert plain(page, reason, is_admin=True) == reason.replace("`", "")


def test_guard_reads_of_no_keyframes(page: Browser) -> None:
    waits = NoPictureTimeout(5.0, 0.0).why_waiting(1000.0)
    assert plain(page, waits).startswith("the camera sends, but no whole picture has come for ")
    assert "GOP" not in plain(page, waits)
    assert "GOP" in plain(page, waits, is_admin=True)
    memory = "too much memory: FFmpeg took more than 512 MB (memory_mb) for its stream"
    assert plain(page, memory) == "too much memory: FFmpeg took more than 512 MB for its stream"


def test_a_view_says_no_reason_twice_and_has_no_code(page: Browser) -> None:
    stalled = camera("stalled", why="no frame for 20 s")
    assert page.run(f"page.cameraState({json.dumps(stalled)})") == {
        "text": "no picture for 20 s",
        "kind": "bad",
        "why": "",
    }
    now = status(hall=camera("unauthorised", why=WRONG_PASSWORD), troubles=1)
    now["limit"] = {"text": "all cores are busy: `max_fps` would help"}
    now["health"]["reason"] = "log: `path` is full"
    state(page, now, [])
    page.run("window.health = page.healthView(state); health.update()")
    text = page.run("health.element.innerText")
    assert "`" not in text
    assert "percent" not in text
    assert "max_fps would help" in text
    page.run("state.me.role = 'admin'; health.update()")
    assert "percent-encoded" in page.run("health.element.innerText")


def test_a_camera_at_a_wrong_address_is_told_so(page: Browser) -> None:
    gone = camera("gone", why="the camera has no stream at the path of `url` (rtsp://10.0.0.11/x): correct it there")
    assert page.run(f"page.cameraState({json.dumps(gone)})") == {
        "text": "answers, but sends no picture for 20 s (its address may be wrong)",
        "kind": "bad",
        "why": "the camera has no stream at the path: tell the person who set camgraph up",
    }


HIDDEN = {"error": "`look: blurred_faces` lets no picture leave", "id": "pictures-hidden"}
VIDEO_OFF = {"message": "live video is off: set `video: true` at the stage `serve`", "id": "video-off"}
LOOK = f"""
window.look = (isAdmin, refusal) => {{
  const live = new page.Live('hall', () => {{}}, isAdmin);
  live.still.say(refusal);
  live.problem = {json.dumps(VIDEO_OFF)};
  live.update({json.dumps(camera())});
  live.close();
  return [live.still.note.textContent, live.note.textContent];
}};
"""


def test_a_guard_reads_that_faces_are_hidden(page: Browser) -> None:
    page.run(LOOK)
    hidden = json.dumps(HIDDEN)
    assert page.run(f"look(false, {hidden})") == [
        "Faces are hidden here, so there is no live picture. Pictures of incidents are under Incidents.",
        "Live video is switched off to protect faces. You see the people as skeletons.",
    ]
    assert page.run(f"look(true, {hidden})") == [
        "look: blurred_faces lets no picture leave",
        "Stills: live video is off: set video: true at the stage serve",
    ]
    none = json.dumps({"error": "the run keeps no pictures: give it `sink_footage`", "id": "pictures-not-kept"})
    assert page.run(f"look(false, {none})") == ["No pictures are kept here.", "Live video is switched off."]


def test_joints_are_drawn_as_far_as_any_stage_knows_them(page: Browser) -> None:
    page.run("window.people = new page.People('hall', () => {})")
    for stage, floor in (("a", 0.2), ("b", 0.4)):
        shapes = {"stage": stage, "zones": {}, "lines": {}, "bones": [], "floor": floor, "size": [4, 3]}
        page.run(f"people.take({json.dumps(shapes)})")
    assert page.run("people.close() || people.shapes.floor") == 0.2


def incident(*labels: str, **more: Any) -> dict[str, Any]:
    """One of a run without `sink_footage`, as the service gives it."""
    file = {"state": "none", "url": None, "why": "the graph has no stage `sink_footage`"}
    said = [{"label": label, "note": "", "by": "night", "time": "2026-11-22T21:14:05Z"} for label in labels]
    times = {"start_time": "2026-11-22T21:14:00Z", "end_time": None, "duration_s": 3.0, "phase": "over", "reason": ""}
    known = {"incident": "1f", "camera": "hall", "rule": "fall", "action": "fall", "about": "Somebody fell", **times}
    known |= {"people": 1, "zones": [], "because": [], "measured": [], "labels": said, "keep": False, "crops": []}
    return {**known, "snapshot": file, "clip": file, **more}


def text_of(page: Browser, one: dict[str, Any], role: str) -> str:
    """What the view of an incident shows to somebody with that role; buttons that are pressed begin with a *."""
    state(page, status(hall=camera()), [], role)
    page.run(f"window.before = window.fetch; window.fetch = async () => new Response({json.dumps(json.dumps(one))})")
    try:
        page.run("window.shown = page.incidentView(state, '1f'); shown.update()")
        page.until("!!shown.element.querySelector('h1')")
    finally:
        page.run("window.fetch = before")
    page.run("shown.element.querySelectorAll('[aria-pressed=true]').forEach((one) => one.prepend('*'))")
    return "\n".join(page.run("[...shown.element.querySelectorAll('p, button')].map((one) => one.textContent)"))


def test_a_guard_reads_that_no_pictures_are_kept(page: Browser) -> None:
    why = "the run keeps no pictures and clips of incidents: give its graph a stage `footage`"
    nothing = "page.nothing({}, {}).map((one) => one.textContent)"
    assert page.run(nothing.format(json.dumps(why), "false")) == [
        "Nothing has happened yet.",
        "No pictures are kept here. The person who set camgraph up can change that.",
    ]
    assert page.run(nothing.format(json.dumps(why), "true")) == [
        "Nothing has happened yet.",
        "The run keeps no pictures and clips of incidents: give its graph a stage footage.",
    ]
    assert page.run(nothing.format("''", "false")) == ["Nothing has happened yet."]
    assert "No pictures are kept here." in text_of(page, incident(), "operator").splitlines()
    assert "sink_footage" not in text_of(page, incident(), "operator")
    assert "Keep for ever" not in text_of(page, incident(), "operator"), "nothing can be kept"
    assert "No picture: the graph has no stage sink_footage" in text_of(page, incident(), "admin")
    disk = {"state": "missing", "url": None, "why": "the disk is full"}
    kept = text_of(page, incident(snapshot=disk, clip=disk), "operator").splitlines()
    assert {"No picture: the disk is full", "Keep for ever"} <= set(kept)


@pytest.mark.parametrize(
    ("labels", "pressed", "row"),
    [
        ([], set(), ""),
        (["acknowledged"], {"*Seen"}, "Seen"),
        (["false_alarm", "acknowledged"], {"*False alarm", "*Seen"}, "False alarm"),
        (["false_alarm", "acknowledged", "true_alarm"], {"*Real", "*Seen"}, "Real"),
        (["true_alarm", "false_alarm"], {"*False alarm"}, "False alarm"),
    ],
)
def test_who_has_seen_it_does_not_take_back_what_it_was(
    page: Browser, labels: list[str], pressed: set[str], row: str
) -> None:
    shown = text_of(page, incident(*labels), "operator").splitlines()
    assert {line for line in shown if line.startswith("*")} == pressed
    last = page.run(
        f"[...page.rowOf({json.dumps(incident(*labels))}, state.silences).querySelectorAll('p')].at(-1).textContent"
    )
    assert last == (row or "lasted 3 s")


def test_a_camera_that_comes_back_is_shown_again(page: Browser) -> None:
    state(page, status(hall=camera(), yard=camera()), [])
    page.run("window.view = page.cameraView(state, 'hall'); document.body.append(view.element)")
    look = (
        "view.update(), [...view.element.children].filter((one) => one.checkVisibility()).map((one) => one.className)"
    )
    try:
        assert page.run(look) == ["", "", ""]
        page.run("window.hall = state.status.cameras.hall; delete state.status.cameras.hall")
        assert page.run(look) == ["", "", "empty"]
        assert "There is no camera hall any more." in page.run("view.element.innerText")
        page.run("state.status.cameras.hall = {...hall, fps: 7}")
        assert page.run(look) == ["", "", ""]
        assert "7.0 pictures a second" in page.run("view.element.innerText")
    finally:
        page.run("view.close(); view.element.remove()")
