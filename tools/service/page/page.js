// The page: which view is shown, what is asked again, and what is said when the service does not answer.

import { get, post, Refused, relative } from "./api.js";
import { fill, make, say } from "./dom.js";
import { cameraView } from "./camera.js";
import { healthView } from "./health.js";
import { emptyList, incidentView, incidentsView } from "./incidents.js";
import { Silences } from "./silences.js";
import { wallView } from "./wall.js";
import { refusal, span, title, verdict } from "./words.js";

const EVERY_MS = 2000;
const SOON_MS = 250;
const SECOND_MS = 1000;
const NEWS = 20;
const OLD_MS = 15000; // after so long without an answer, nothing on the page is of now

const main = document.getElementById("main");
const banner = document.getElementById("banner");
const said = document.getElementById("verdict");
const leave = document.getElementById("logout");
const refused = document.getElementById("refused");
const age = make("span", { "aria-live": "off" });
// `status`: null until it is known, and while somebody is asked for a token; `changes`: how often this page has changed anything.
const state = {
  status: null, incidents: [], running: [], silences: new Silences(), me: { role: "anyone", name: "" }, list: emptyList(), changes: 0,
};
let view = null;
let timer = 0;
let isLooking = false;
let shown = "";
let known = null;
let stream = null;
let isListening = false;
let heard = 0;
let steps = 0;
let ageing = 0;

function viewOf(hash) {
  const [, kind = "", name = ""] = hash.replace(/^#/, "").split("/");
  const given = decoded(name);
  if (kind === "incidents" && given) return ["incidents", () => incidentView(state, given)];
  if (kind === "incidents") return ["incidents", () => incidentsView(state)];
  if (kind === "camera") return ["wall", () => cameraView(state, given)];
  if (kind === "health") return ["health", () => healthView(state)];
  return ["wall", () => wallView(state)];
}

// How many places of this page lie before this one in the history: going back from the first one would leave the page.
function count() {
  if (history.state?.steps === undefined) history.replaceState({ steps: shown ? steps + 1 : 0 }, "");
  steps = history.state.steps;
}

// To where one came from on this page, or else to the list that this is one of.
function back() {
  if (steps > 0) history.back();
  else location.hash = location.hash.startsWith("#/incidents/") ? "#/incidents" : "#/";
}

function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

const place = () => location.hash || "#/";

function open() {
  const hash = place();
  if (hash === shown && view) return;
  if (view?.keeps?.() && !confirm(view.keeps())) {
    history.pushState({ steps: ++steps }, "", shown);
    return;
  }
  count();
  view?.close?.();
  const [name, begin] = viewOf(hash);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  view = begin();
  if (view.hasStreams) release();
  else if (isListening) listen();
  fill(main, view.element);
  if (shown) main.focus({ preventScroll: true });
  shown = hash;
  window.scrollTo(0, 0);
  view.update();
}

const form = () => main.querySelector(".login");

// Asked for once: a person who types a token is not disturbed by what the page still hears. Nothing of before is shown
// meanwhile, and no view is opened; only a drawing that is not saved is kept, out of sight.
function login() {
  release();
  clearInterval(ageing);
  isListening = false;
  banner.hidden = true;
  document.body.classList.remove("away");
  state.status = null;
  leave.hidden = true;
  said.textContent = "";
  document.title = "camgraph";
  if (form()) return;
  if (view?.keeps?.()) {
    view.rest();
    view.element.hidden = true;
  } else {
    view?.close?.();
    view = null;
    shown = "";
  }
  const token = make("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
  const error = make("p", { class: "error", role: "alert" });
  const send = async (event) => {
    event.preventDefault();
    try {
      await post("/login", { token: token.value });
      await welcome();
    } catch (problem) {
      error.textContent = problem.status === 401 ? "This token is not known." : `${problem.message}.`;
      token.select();
    }
  };
  fill(main, make("form", { class: "login", onsubmit: send },
    make("h1", { text: "Who is looking?" }),
    view ? make("p", { text: "Your drawing is kept until you have logged in." }) : null,
    make("label", { for: "token", text: "Your token, from the person who set camgraph up" }), token,
    make("button", { text: "Log in" }), error), view?.element);
  token.focus();
}

// Somebody has logged in, here or in another window. All begins anew, unless they go on with a drawing.
async function welcome() {
  const { role } = state.me;
  if (!view || !(await identify()) || state.me.role !== role) return location.reload();
  form()?.remove();
  view.element.hidden = false;
  leave.hidden = !state.me.name;
  isListening = true;
  soon();
}

async function logout() {
  if (view?.keeps?.() && !confirm(view.keeps())) return;
  refused.hidden = true;
  try {
    await post("/logout");
  } catch (problem) {
    refused.textContent = `You are still logged in: ${problem.message}.`;
    refused.hidden = false;
    return;
  }
  view?.close?.();
  view = null; // nothing asks whether to leave it
  location.reload();
}

// `incidents`: the newest. They are news if they were not among those that were read before.
function tellNews(incidents) {
  const fresh = known && incidents.filter((one) => !known.has(one.incident));
  if (fresh?.length) document.getElementById("news").textContent = fresh.map((one) => `${title(one.action)}, ${one.camera}`).join("; ");
  known = new Set(incidents.map((one) => one.incident));
}

// What was asked before a change of this page may be of before it: it is left to the next turn.
function takeIncidents(list, running, changes) {
  state.silences.read(running.status === "fulfilled");
  if (changes !== state.changes) return;
  if (running.status === "fulfilled") state.running = running.value.incidents;
  if (list.status === "fulfilled") {
    state.incidents = list.value.incidents;
    tellNews(state.incidents);
  }
}

function tellVerdict() {
  const { text, isBad } = verdict(state.status, state.running, state.silences);
  say(said, text);
  said.classList.toggle("bad", isBad);
  const running = state.silences.isUnread ? "?" : state.running.length;
  document.title = running ? `(${running}) camgraph` : "camgraph";
}

async function look() {
  if (isLooking) return;
  clearTimeout(timer);
  isLooking = true;
  try {
    const { changes } = state;
    const [status, list, running] = await Promise.allSettled([
      get("/api/status"), get(`/api/incidents?limit=${NEWS}`), get("/api/incidents?phase=running&limit=200")]);
    if (status.status === "rejected") throw status.reason;
    if (form()) return welcome();
    state.status = status.value;
    state.silences.update(state.status.cameras);
    takeIncidents(list, running, changes);
    answered();
    const failed = [list, running].find((one) => one.status === "rejected");
    say(banner, failed ? `The incidents cannot be read now: ${failed.reason.message}` : "");
    banner.hidden = !failed;
    tellVerdict();
    if (view && shown === place()) view.update();
    else open();
  } catch (problem) {
    if (problem instanceof Refused && problem.status === 401) return login();
    complain(problem);
  } finally {
    isLooking = false;
  }
  timer = setTimeout(look, document.hidden ? 5 * EVERY_MS : EVERY_MS);
}

// New events are looked at once, and not only with the next turn. The browser connects again by itself.
function listen() {
  if (stream || document.hidden || view?.hasStreams) return;
  stream = new EventSource(relative("/api/events/stream"));
  stream.onmessage = soon;
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(look, SOON_MS);
}

// A browser has six connections to a host for all its tabs: one that nobody sees keeps none of them, and a view that has
// streams of its own does without this one.
function release() {
  stream?.close();
  stream = null;
}

function onVisibility() {
  if (document.hidden) return release();
  if (Date.now() - heard > OLD_MS) {
    document.body.classList.add("away");
    said.textContent = "Asking how things are…";
    document.title = "(?) camgraph";
  }
  if (isListening) listen();
  soon();
}

function keys(event) {
  if (!state.status) return;
  if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && view?.escape?.()) return;
  if (event.key === "Escape" && location.hash.split("/").length > 2) back();
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const items = [...main.querySelectorAll(".tile, .row")];
  if (!step || !items.length || !(document.activeElement === main || items.includes(document.activeElement))) return;
  const at = items.indexOf(document.activeElement);
  items[Math.min(items.length - 1, Math.max(0, at + step))].focus();
  event.preventDefault();
}

function tellAge() {
  say(age, heard ? ` What you see is of ${span((Date.now() - heard) / 1000)} ago.` : "");
}

// What stands on the page is not of now: it is dimmed as long as the banner says so, and its age grows with each second. That
// is not read aloud each time.
function complain(problem) {
  clearInterval(ageing);
  ageing = setInterval(tellAge, SECOND_MS);
  tellAge();
  const words = refusal(problem);
  if (!age.isConnected || banner.firstChild.data !== words) fill(banner, words, age, " This page tries again by itself.");
  banner.title = problem.message; // for the person who set it up
  banner.hidden = false;
  document.body.classList.add("away");
  said.textContent = "";
  document.title = `(?) ${words.replace(/\.$/, "")}`;
}

// A connection that was dead may never tell: after a silence the stream of events is begun anew.
function answered() {
  heard = Date.now();
  clearInterval(ageing);
  banner.title = "";
  if (!document.body.classList.contains("away")) return;
  document.body.classList.remove("away");
  release();
  if (isListening) listen();
}

// Who looks. A screen on a wall is alone for months: it goes on trying.
async function identify() {
  for (;;) {
    try {
      state.me = await get("/api/me");
      return true;
    } catch (problem) {
      if (problem instanceof Refused && problem.status === 401) return false;
      complain(problem);
      await new Promise((done) => setTimeout(done, EVERY_MS));
    }
  }
}

async function begin() {
  window.addEventListener("hashchange", () => state.status && open());
  document.addEventListener("keydown", keys);
  leave.addEventListener("click", logout);
  const isKnown = await identify();
  clearInterval(ageing);
  banner.hidden = true;
  document.body.classList.remove("away");
  leave.hidden = !state.me.name;
  if (!isKnown || state.me.role === "anyone") return login();
  await look();
  isListening = !form();
  if (isListening) listen();
  document.addEventListener("visibilitychange", onVisibility);
  window.addEventListener("beforeunload", (event) => view?.keeps?.() && event.preventDefault());
  window.addEventListener("pagehide", () => {
    release();
    view?.close?.();
  });
  // Kept by the browser when the user left, and shown again: its view is closed.
  window.addEventListener("pageshow", (event) => event.persisted && location.reload());
}

begin();
