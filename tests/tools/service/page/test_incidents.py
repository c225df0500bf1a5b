"""The views of incidents in headless Chromium: what they show when things change, or the service refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from camgraph_test_stages.browser import Browser

pytestmark = pytest.mark.processes

PAGE = 30
NOTHING = "Nothing has happened yet."
SERVICE = """
window.kept = [];
window.refuses = "";
window.removed = "";  // goes as soon as a page behind it is asked for
window.unknown = [404, { error: "no such incident" }];  // the answer to a page behind one that is not there
window.waits = [];  // requests that are answered one by one
window.isSlow = false;
window.answered = (status, body) => {  // whose body needs no turn of the event loop, so that a timer comes after all
  const text = JSON.stringify(body);
  return Object.assign(new Response(text, { status }), { json: async () => JSON.parse(text) });
};
window.ask = (path) => {
  if (refuses) return answered(503, { error: refuses });
  const asked = new URLSearchParams(path.split("?")[1]);
  if (removed && asked.get("before") === removed) kept = kept.filter((one) => one.incident !== removed);
  const before = kept.findIndex((one) => one.incident === asked.get("before"));
  if (asked.get("before") && before < 0) return answered(...unknown);
  const found = kept.slice(before + 1).filter((one) => !asked.get("camera") || one.camera === asked.get("camera"));
  return answered(200, { incidents: found.slice(0, asked.get("limit")), more: found.length > asked.get("limit") });
};
window.clip = () => new Promise(() => {});
window.fetch = (path) => {
  if (path.startsWith("./clip")) return clip();
  const answer = ask(path);
  return isSlow ? new Promise((go) => waits.push(() => go(answer))) : Promise.resolve(answer);
};
window.Now = Date;
window.later = 0;
window.Date = class extends Now {
  constructor(...given) { super(...(given.length ? given : [Now.now() + later])); }
  static now() { return Now.now() + later; }
};
"""
AT_ONCE = "new Promise((go) => setTimeout(go, 20))"


def incident(number: int, camera: str = "hall", **more: Any) -> dict[str, Any]:
    none = {"state": "none", "url": None, "why": ""}
    return {
        "incident": f"{number:08x}", "camera": camera, "action": "fall", "rule": "fall", "phase": "single",
        "start_time": "2026-11-26T02:00:00Z", "duration_s": 1.0, "labels": [], "snapshot": none, "clip": none,
        "people": 1, "zones": [], "because": [], "measured": [], "crops": [], "keep": False, "reason": "", **more,
    }  # fmt: skip


@pytest.fixture
def quiet(page: Browser) -> Iterator[Browser]:
    """A page over a service that has no incident yet."""
    cameras = {name: {"state": "live", "through_s": 0.1} for name in ("hall", "yard")}
    state = {"status": {"cameras": cameras}, "running": [], "incidents": [], "me": {"role": "operator", "name": ""}}
    page.run(f"(() => {{ {SERVICE} }})()")
    page.run(f"window.state = {json.dumps(state | {'changes': 0})}; state.silences = new page.Silences()")
    page.run("state.list = page.emptyList(); state.silences.update(state.status.cameras)")
    yield page
    page.run("window.Date = Now")


@pytest.fixture
def shown(quiet: Browser) -> Browser:
    """The list of its incidents."""
    quiet.run("window.view = page.incidentsView(state)")
    return quiet


def update(page: Browser, *newest: dict[str, Any]) -> None:
    """What the page does every two seconds. The answers of this service are there at once."""
    page.run(f"state.incidents = {json.dumps(newest)}; view.update(); {AT_ONCE}")


def choose(page: Browser, camera: str) -> None:
    page.run(f"""(() => {{
        const choice = view.element.querySelector("select");
        choice.value = "{camera}";
        choice.dispatchEvent(new Event("change"));
        return {AT_ONCE};
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


def running(number: int, **more: Any) -> dict[str, Any]:
    return incident(number, phase="running", duration_s=None, **more)


def labelled(label: str = "false_alarm") -> dict[str, Any]:
    return {"labels": [{"label": label, "note": "", "by": "night", "time": "2026-11-26T02:00:05Z"}]}


def earlier(page: Browser) -> None:
    page.run(f"[...view.element.querySelectorAll('button')].at(-1).click(); {AT_ONCE}")


def numbers(page: Browser) -> list[int]:
    """Of the rows, from the top."""
    links = page.run("[...view.element.querySelectorAll('.row')].map((one) => one.getAttribute('href'))")
    return [int(link.rsplit("/", 1)[1], 16) for link in links]


def test_an_end_is_shown_however_much_came_since(shown: Browser) -> None:
    """The page asks every two seconds for the newest 20, and for those that go on."""
    newer = [incident(number) for number in range(25, 1, -1)]
    shown.run(f"kept = {json.dumps([*newer, running(1)])}; state.running = [kept.at(-1)]")
    update(shown, *newer[:20])
    assert "still going on" in text(shown)
    shown.run("kept.at(-1).phase = 'single'; state.running = []")
    update(shown, *newer[:20])
    assert "still going on" not in text(shown)
    assert len(numbers(shown)) == 25


def test_rows_of_earlier_pages_are_read_again_after_a_while(shown: Browser) -> None:
    shown.run(f"kept = {json.dumps([incident(number) for number in range(70, 0, -1)])}")
    update(shown, incident(70))
    earlier(shown)
    shown.run(f"Object.assign(kept[44], {json.dumps(labelled())}); later = 15000")
    update(shown, incident(70))
    assert shown.run("view.element.querySelectorAll('.row')[44].innerText.includes('False alarm')")
    assert numbers(shown) == list(range(70, 10, -1))


def test_a_label_is_in_the_list_to_which_one_comes_back(shown: Browser) -> None:
    shown.run(f"kept = {json.dumps([incident(number) for number in range(70, 0, -1)])}")
    update(shown, incident(70))
    earlier(shown)
    shown.run(
        f"window.labelled = {{...kept[44], ...{json.dumps(labelled())}}}; window.ask = () => answered(200, labelled)"
    )
    shown.run(f"window.view = page.incidentView(state, labelled.incident); view.update(); {AT_ONCE}")
    shown.run(f"[...view.element.querySelectorAll('button')][1].click(); {AT_ONCE}")
    shown.run("window.fetch = () => new Promise(() => {}); window.view = page.incidentsView(state); view.update()")
    assert shown.run("view.element.querySelectorAll('.row')[44].innerText.includes('False alarm')")


def test_today_is_over_at_midnight(shown: Browser) -> None:
    now = shown.run("new Date().toISOString()")
    shown.run(f"kept = {json.dumps([incident(1, start_time=now)])}")
    update(shown, incident(1))
    assert "today" in text(shown)
    shown.run("later = 86400000; window.fetch = () => new Promise(() => {})")
    update(shown, incident(1))
    assert "today" not in text(shown)


def test_a_row_that_changes_keeps_the_focus(shown: Browser) -> None:
    shown.run(f"kept = {json.dumps([incident(2), incident(1)])}; document.body.append(view.element)")
    update(shown, incident(2))
    shown.run("view.element.querySelectorAll('.row')[1].focus()")
    shown.run(f"kept = {json.dumps([incident(3), incident(2), incident(1, **labelled())])}")
    update(shown, incident(3))
    assert shown.run("document.activeElement.innerText").endswith("False alarm")
    shown.run("view.element.remove()")


def test_the_keyboard_goes_on_from_the_last_row(shown: Browser) -> None:
    shown.run(f"kept = {json.dumps([incident(number) for number in range(40, 0, -1)])}")
    shown.run("document.body.append(view.element)")
    update(shown, incident(40))
    shown.run("[...view.element.querySelectorAll('button')].at(-1).focus()")
    earlier(shown)
    assert shown.run("document.activeElement.getAttribute('href')") == "#/incidents/00000001"
    shown.run("view.element.remove()")


@pytest.mark.parametrize("unknown", [[404, {"error": "gone"}], [200, {"incidents": [], "more": False}]])
def test_earlier_ones_are_shown_though_the_last_row_is_gone(shown: Browser, unknown: list[Any]) -> None:
    shown.run(f"window.unknown = {json.dumps(unknown)}")
    shown.run(f"kept = {json.dumps([incident(number) for number in range(270, 0, -1)])}")
    update(shown, incident(270))
    shown.run("removed = kept[29].incident")
    earlier(shown)
    assert len(numbers(shown)) == 60
    shown.run("removed = kept[199].incident; state.list.pages = 8")
    earlier(shown)
    shown.run("state.list.pages = 8")
    update(shown, incident(1))
    assert len(numbers(shown)) == 240
    assert shown.run("view.element.querySelectorAll('.error')[0].textContent") == ""


def test_none_vanishes_if_one_comes_while_earlier_ones_load(shown: Browser) -> None:
    shown.run(f"kept = {json.dumps([incident(number) for number in range(70, 0, -1)])}")
    update(shown, incident(70))
    shown.run("isSlow = true")
    earlier(shown)
    shown.run(f"kept = [{json.dumps(incident(71))}, ...kept]")
    update(shown, incident(71))
    for _ in range(3):
        shown.run(f"waits.splice(0).reverse().forEach((go) => go()); {AT_ONCE}")
        update(shown, incident(71))
    assert numbers(shown) == list(range(71, 11, -1))


def test_a_list_of_a_camera_follows_labels_too(quiet: Browser) -> None:
    quiet.run(f"kept = {json.dumps([incident(2), incident(1, 'yard')])}")
    quiet.run("window.view = new page.IncidentRows(state, page.emptyList('hall'))")
    update(quiet, incident(2))
    assert numbers(quiet) == [2]
    quiet.run(f"Object.assign(kept[0], {json.dumps(labelled())})")
    update(quiet, incident(2, **labelled()))
    assert "False alarm" in text(quiet)


@pytest.fixture
def one(quiet: Browser) -> Iterator[Browser]:
    """The view of an incident that goes on: the global `now`. Changes are answered with `changed()`."""
    because = {"because": ["score > 0.3"], "measured": ["so sure"]}
    quiet.run(f"window.now = {json.dumps(running(1, **because))}; window.ask = () => answered(200, now)")
    quiet.run("window.view = page.incidentView(state, '1'); document.body.append(view.element)")
    see(quiet)
    yield quiet
    quiet.run("view.close(); view.element.remove()")


def see(page: Browser) -> None:
    page.run(f"view.update(); {AT_ONCE}")


BUTTON = "[...view.element.querySelectorAll('button')].find((one) => one.textContent === '{}')"


def test_what_cannot_be_read_any_more_does_not_go_on(one: Browser) -> None:
    assert "still going on" in text(one)
    one.run("refuses = 'the disk does not answer'; window.ask = () => answered(503, { error: refuses })")
    see(one)
    assert "still going on" not in text(one)
    assert "not known since" in text(one)
    assert "The disk does not answer. What you see here was so at" in text(one)
    assert one.run("view.element.querySelector('.facts').classList.contains('old')")
    one.run("window.ask = () => answered(404, { error: 'no incident' })")
    see(one)
    assert "This incident is not kept any more." in text(one)
    one.run("window.ask = () => answered(200, now)")
    see(one)
    assert "still going on" in text(one)
    assert "was so at" not in text(one)
    assert not one.run("view.element.querySelector('.facts').classList.contains('old')")


VIDEO = "view.element.querySelector('video')"


def film(page: Browser, **clip: Any) -> None:
    """Show the incident with this clip, which cannot be had from the server of these tests."""
    page.run(f"now = {{...now, clip: {json.dumps({'url': '/clip.mp4', **clip})}}}")
    see(page)


def test_a_clip_that_grew_is_loaded_when_it_is_whole(one: Browser) -> None:
    film(one, state="pending")
    note = "The clip is still being recorded"
    assert one.run(f"{VIDEO}.getAttribute('src')") == "./clip.mp4?pending"
    assert one.run(
        f"[...view.element.querySelectorAll('.quiet')].some((p) => !p.hidden && p.innerText.startsWith({note!r}))"
    )
    one.run(f"window.first = {VIDEO}; first.currentTime = 3")
    see(one)
    assert one.run(f"{VIDEO} === first"), "it is not disturbed meanwhile"
    film(one, state="ready", bytes=1234)
    assert one.run(f"[{VIDEO}.getAttribute('src'), {VIDEO}.currentTime]") == ["./clip.mp4?ready-1234", 3]
    assert not one.run(
        f"[...view.element.querySelectorAll('.quiet')].some((p) => !p.hidden && p.innerText.startsWith({note!r}))"
    )


def test_the_service_says_why_a_clip_is_not_shown(one: Browser) -> None:
    one.run("window.clip = async () => answered(503, { error: 'the disk does not answer' })")
    film(one, state="ready", bytes=1)
    one.until("view.element.innerText.includes('The clip cannot be shown now: the disk does not answer.')")
    assert "This browser" not in text(one)
    one.run("window.clip = async () => answered(200, {})")
    one.run(f"{BUTTON.format('Try again')}.click()")
    one.until("view.element.innerText.includes('This browser cannot play the clip.')")
    assert one.run(f"!!{BUTTON.format('Try again')} && !!view.element.querySelector('[download]')")


REAL = BUTTON.format("Real")
PRESSED = f"{REAL}.getAttribute('aria-pressed')"


def test_a_label_is_not_lost_to_an_answer_of_before_it(one: Browser) -> None:
    one.run("isSlow = true; view.update(); 0")
    one.run(f"now = {{...now, ...{json.dumps(labelled('true_alarm'))}}}; {REAL}.click()")
    one.run(f"waits.pop()(); {AT_ONCE}")
    assert one.run(PRESSED) == "true"
    one.run(f"waits.pop()(); {AT_ONCE}")
    assert one.run(PRESSED) == "true", "that answer was on its way before"


def test_why_a_label_was_refused_stays_to_be_read(one: Browser) -> None:
    one.run(f"window.ask = () => answered(409, {{ error: 'too many labels' }}); {REAL}.click(); {AT_ONCE}")
    one.run("window.ask = () => answered(200, {...now, people: 2})")
    see(one)
    assert "2 people" in text(one)
    assert "too many labels" in text(one)


def test_the_keyboard_keeps_its_place_when_things_change(one: Browser) -> None:
    one.run("view.element.querySelector('details').open = true")
    one.run(f"{BUTTON.format('Seen')}.focus()")
    one.run(f"now = {{...now, ...{json.dumps(labelled('acknowledged'))}}}; document.activeElement.click(); {AT_ONCE}")
    assert one.run("[document.activeElement.textContent, document.activeElement.ariaPressed]") == ["Seen", "true"]
    one.run("now = {...now, phase: 'over', people: 2}")
    see(one)
    assert one.run("document.activeElement.textContent") == "Seen"
    assert one.run("view.element.querySelector('details').open")
