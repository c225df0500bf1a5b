// The list of incidents, and one of them with its picture, its clip and its reasons.

import { fetched, get, post, relative } from "./api.js";
import { fill, Listing, make, refill, say } from "./dom.js";
import { notShown, plain } from "./plain.js";
import { clock, counted, LABELS, lasted, sentence, title, when } from "./words.js";

const PAGE = 30;
const MOST = 200; // that the service gives at a time
const AGAIN_MS = 10000;
const NOT_KEPT = "pictures-not-kept";

// The labels that hold: the last that says that it was seen, and behind it the last that says whether it was real.
function holding({ labels }) {
  const last = (...kinds) => labels.findLast((one) => kinds.includes(one.label));
  return [last("acknowledged"), last("true_alarm", "false_alarm")].filter(Boolean).map((one) => one.label);
}

// In place of rows. `why`: for what reason incidents have no pictures here, if they have none.
export function nothing(why, isAdmin) {
  const none = make("p", { class: "empty", text: "Nothing has happened yet." });
  if (!why) return [none];
  const more = isAdmin ? "" : " The person who set camgraph up can change that.";
  return [none, make("p", { class: "quiet", text: notShown({ error: sentence(`${why}.`), id: NOT_KEPT }, isAdmin) + more })];
}

// Whether the run keeps pictures and clips; without them, the history of events tells of an incident.
const isKept = (incident) => incident.snapshot.state !== "none";

// One of a list. Its element stays the same, so that nothing moves under the eyes or loses the focus.
class Row {
  constructor(name) {
    this.picture = make("span");
    this.words = make("div");
    this.element = make("a", { class: "row", href: `#/incidents/${encodeURIComponent(name)}` }, this.picture, this.words);
  }

  update([incident, how]) {
    const labels = holding(incident);
    const { url, state } = incident.snapshot;
    this.element.classList.toggle("seen", labels.length > 0);
    refill(this.picture, url || state, () => [url
      ? make("img", { class: "still", src: relative(url), loading: "lazy", alt: "" })
      : make("span", { class: "still none", text: state === "pending" ? "picture to come" : "no picture" })]);
    const label = LABELS[labels.at(-1)];
    const today = new Date().toDateString(); // at midnight, the words for the time are others
    refill(this.words, JSON.stringify([today, how, label, incident.phase]), () => [
      make("p", {}, make("strong", { text: `${title(incident.action)}: ${incident.camera}` })),
      make("p", { text: when(incident.start_time) }),
      make("p", { class: incident.phase === "running" ? "running" : "quiet", text: how }),
      label ? make("p", { class: "quiet", text: label }) : null]);
  }
}

export function rowOf(incident, silences) {
  const row = new Row(incident.incident);
  row.update([incident, lasted(incident, silences)]);
  return row.element;
}

// Of a list: which camera it is of ("": all), what was read, and how many pages are to be shown.
export const emptyList = (camera = "") => ({ camera, incidents: [], why: "", hasMore: false, isLoaded: false, pages: 1, reading: null });

// The newest incidents of a camera, or of all (""). The last one of a part may be removed before the next part is asked for,
// which has no beginning then: all is read anew, once.
async function newest(camera, most, isAgain = false) {
  const of = camera ? `&camera=${encodeURIComponent(camera)}` : "";
  const found = { incidents: [], more: true };
  while (found.more && found.incidents.length < most) {
    const last = found.incidents.at(-1);
    const behind = last ? `&before=${encodeURIComponent(last.incident)}` : "";
    const part = await get(`/api/incidents?limit=${Math.min(MOST, most - found.incidents.length)}${of}${behind}`).catch((problem) => {
      if (last && problem.status === 404) return { incidents: [], more: true };
      throw problem;
    });
    if (!part.incidents.length) return last && !isAgain ? newest(camera, most, true) : { ...found, more: part.more, why: part.why };
    found.incidents.push(...part.incidents);
    found.more = part.more;
  }
  return found;
}

// The incidents of `memory` (see `emptyList`) as rows. All that are shown are read again as soon as something is new or has
// ended, and from time to time, since others say what they were as well.
export class IncidentRows {
  constructor(state, memory, drawn = () => {}) {
    Object.assign(this, { state, memory, drawn });
    const rows = make("div", { class: "rows" });
    this.listing = new Listing(rows, (name) => new Row(name));
    this.none = make("div");
    this.error = make("p", { class: "error", role: "alert" });
    this.element = make("div", {}, rows, this.none, this.error);
    this.seen = null;
    this.dueMs = 0;
  }

  get last() {
    return this.element.querySelector(".row:last-child");
  }

  // Changes when there may be something to read.
  get news() {
    const { running, incidents } = this.state;
    const goOn = new Set(running.map((one) => one.incident));
    const ended = this.memory.incidents.filter((one) => one.phase === "running" && !goOn.has(one.incident));
    const here = incidents.filter((one) => !this.memory.camera || one.camera === this.memory.camera);
    return [...here.map((one) => one.incident + one.phase + one.snapshot.state + one.labels.length), ...ended.map((one) => one.incident)].join();
  }

  update() {
    const { news } = this;
    const isDue = news !== this.seen || (Date.now() > this.dueMs && !document.hidden);
    if (isDue && !this.memory.reading) {
      this.seen = news;
      this.load();
    }
    this.draw();
  }

  // The answer counts only if nothing else was wanted or changed meanwhile.
  async load() {
    const { memory, state } = this;
    const mine = memory.reading = { changes: state.changes };
    try {
      const found = await newest(memory.camera, memory.pages * PAGE);
      if (memory.reading !== mine) return;
      say(this.error, "");
      this.dueMs = Date.now() + AGAIN_MS;
      if (mine.changes === state.changes) Object.assign(memory, { incidents: found.incidents, hasMore: found.more, why: found.why || "", isLoaded: true });
      else this.seen = null;
    } catch (problem) {
      if (memory.reading !== mine) return;
      say(this.error, problem.message);
      this.seen = null; // the next update tries again
    }
    memory.reading = null;
    this.draw();
  }

  draw() {
    const { incidents, isLoaded, why } = this.memory;
    this.listing.update(incidents.map((one) => [one.incident, [one, lasted(one, this.state.silences)]]));
    const isEmpty = isLoaded && !incidents.length;
    refill(this.none, isEmpty && `none: ${why}`, () => (isEmpty ? nothing(why, this.state.me.role === "admin") : []));
    this.drawn();
  }
}

// What was chosen and read is remembered in `state.list`: who comes back from an incident goes on where they were.
export function incidentsView(state) {
  const memory = state.list;
  const camera = make("select", { id: "of", onchange: choose });
  const more = make("button", { text: "Show earlier ones", hidden: true, onclick: earlier });
  const rows = new IncidentRows(state, memory, drawn);
  const element = make("section", {}, make("h1", { text: "Incidents" }),
    make("div", { class: "bar" }, make("label", { for: "of", text: "Camera" }), camera), rows.element, make("div", { class: "bar" }, more));

  function options() {
    // Also those that were removed or renamed, as far as they are known.
    const found = new Set([...Object.keys(state.status.cameras), ...memory.incidents.map((one) => one.camera)]);
    if (memory.camera) found.add(memory.camera);
    const names = ["", ...[...found].sort()];
    if ([...camera.options].map((one) => one.value).join() !== names.join()) {
      fill(camera, ...names.map((name) => make("option", { value: name, text: name || "all" })));
    }
    camera.value = memory.camera;
  }

  function drawn() {
    if (!memory.hasMore && document.activeElement === more) rows.last?.focus(); // what is hidden loses it
    more.hidden = !memory.hasMore;
    options();
  }

  function choose() {
    Object.assign(memory, emptyList(camera.value));
    rows.draw();
    rows.load();
  }

  // A page can have fewer than it should: one of its incidents was just removed.
  function earlier() {
    memory.pages = Math.ceil(memory.incidents.length / PAGE) + 1;
    rows.load();
  }

  if (memory.incidents.length) rows.draw();
  return { element, update: () => rows.update() };
}

// Of a rule that does not say what it is about.
function inPlain(incident) {
  const who = incident.people === 1 ? "Somebody" : incident.people ? counted(incident.people, "person").replace("persons", "people") : "The camera";
  const where = incident.zones.length ? ` in ${incident.zones.join(", ")}` : "";
  return `${who}${where}: the rule “${incident.rule.replaceAll("_", " ")}” was met.`;
}

// The values that decided, in words; and the lines of the rule, for those who wrote it.
function measured(incident) {
  if (!incident.because.length) return [];
  const list = (texts) => make("ul", {}, ...texts.map((text) => make("li", { text })));
  const inWords = incident.measured.length ? [make("h2", { text: "Measured" }), list(incident.measured)] : [];
  return [...inWords,
    make("details", {}, make("summary", { text: "As the rule is written" }), list(incident.because))];
}

// What a label, or keeping it, has made of an incident: lists show that too, and no answer to an earlier question.
function remember(state, incident) {
  for (const list of [state.list.incidents, state.incidents, state.running]) {
    const n = list.findIndex((one) => one.incident === incident.incident);
    if (n >= 0) list[n] = incident;
  }
}

// Everything is changed in its place: the focus, a clip that plays and the opened details stay.
export function incidentView(state, name) {
  const path = `/api/incidents/${encodeURIComponent(name)}`;
  const isAdmin = state.me.role === "admin";
  const unread = make("p", { class: "error", role: "alert" });
  const heading = make("h1");
  const film = new Film(isAdmin);
  const picture = make("a", { class: "way", text: "The picture alone" });
  const alone = make("p", {}, picture);
  const crops = make("div", { class: "crops" });
  const time = make("strong");
  const how = make("p");
  const who = make("p");
  const bar = make("div", { class: "bar" });
  const message = make("p", { class: "error", role: "alert" });
  const about = make("p");
  const reasons = make("div");
  const said = make("div");
  const facts = make("div", { class: "facts" },
    make("p", {}, time), how, who, bar, message, make("h2", { text: "Why it was reported" }), about, reasons, said);
  const all = make("div", { class: "split" }, make("div", {}, film.element, alone, crops), facts);
  const element = make("section", {}, make("p", {}, make("a", { class: "way", href: "#/incidents", text: "All incidents" })), unread);
  const presses = new Map();
  let shown = null;
  let readAt = null;
  let isAsking = false;

  function buttons(incident) {
    if (!["operator", "admin"].includes(state.me.role)) return [];
    const button = (key, text, press) => presses.set(key, make("button", { text, onclick: press })).get(key);
    const labels = Object.entries(LABELS).map(([key, text]) => button(key, text, () => act("labels", { label: key, note: "" })));
    const keep = () => button("keep", "Keep for ever", () => act("keep", { keep: !shown.keep }));
    // The history goes in its turn: in it, nothing can be kept.
    return isKept(incident) ? [...labels, keep()] : labels;
  }

  async function act(call, body) {
    state.changes += 1;
    try {
      const found = await post(`${path}/${call}`, body);
      remember(state, found);
      message.textContent = "";
      draw(found);
    } catch (problem) {
      message.textContent = problem.message;
    }
    state.changes += 1;
  }

  function draw(incident) {
    if (!shown) element.append(heading, all);
    shown = incident;
    readAt = new Date();
    say(unread, "");
    facts.classList.remove("old");
    say(heading, `${title(incident.action)}: ${incident.camera}`);
    film.update(incident);
    alone.hidden = !incident.snapshot.url || !incident.clip.url;
    picture.setAttribute("href", relative(incident.snapshot.url) || "");
    refill(crops, incident.crops.join(" "), () => incident.crops.map((src) => make("img", { src, alt: "One of the people" })));
    say(time, when(incident.start_time));
    tellHow(lasted(incident, state.silences));
    say(who, counted(incident.people, "person").replace("persons", "people") + (incident.zones.length ? ` in ${incident.zones.join(", ")}` : ""));
    refill(bar, String(isKept(incident)), () => buttons(incident));
    const pressed = [...holding(incident), ...(incident.keep ? ["keep"] : [])];
    for (const [key, button] of presses) button.setAttribute("aria-pressed", String(pressed.includes(key)));
    say(about, incident.about || inPlain(incident));
    refill(reasons, JSON.stringify([incident.because, incident.measured]), () => measured(incident));
    const labels = incident.labels.map((one) => `${LABELS[one.label]}, ${one.by || "somebody"}, ${when(one.time)}${one.note ? `: ${one.note}` : ""}`);
    refill(said, JSON.stringify(labels), () => (labels.length ? [make("h2", { text: "What people said" }), ...labels.map((text) => make("p", { text }))] : []));
  }

  function tellHow(text) {
    how.className = shown.phase === "running" ? "running" : "";
    say(how, text + (shown.reason ? `: ${shown.reason}` : ""));
  }

  // What stands there is of before, and must not look like now.
  function age(problem) {
    const why = problem.status === 404 && shown ? "this incident is not kept any more" : plain(problem.message, isAdmin);
    if (!shown) return say(unread, `${sentence(why)}.`);
    say(unread, `${sentence(why)}. What you see here was so at ${clock(readAt)}.`);
    facts.classList.add("old");
    if (shown.phase === "running") tellHow(`not known since ${clock(readAt)}`);
  }

  // An answer to a question from before a change, or during it, may be of before it.
  async function update() {
    if (isAsking) return;
    isAsking = true;
    const { changes } = state;
    try {
      const found = await get(path);
      if (changes === state.changes) draw(found);
    } catch (problem) {
      age(problem);
    } finally {
      isAsking = false;
    }
  }

  return { element, update, close: () => film.close() };
}

// The clip of an incident, or its picture while there is none, or none that can be shown.
class Film {
  constructor(isAdmin) {
    this.isAdmin = isAdmin;
    this.place = make("div");
    this.note = make("p", { class: "quiet", hidden: true, text: "The clip is still being recorded: this is what there is so far." });
    this.element = make("div", {}, this.place, this.note);
    this.refused = null; // the address of a clip that was not shown, and why
  }

  // A clip that grows has the same address when it is whole, and the browser would not read it again.
  static addressOf({ clip }) {
    return clip.url && `${relative(clip.url)}?${clip.state}${clip.bytes ? `-${clip.bytes}` : ""}`;
  }

  update(incident) {
    this.incident = incident;
    const address = Film.addressOf(incident);
    const isShown = address && this.refused?.address !== address;
    this.note.hidden = !isShown || incident.clip.state !== "pending";
    const still = [incident.snapshot.url, incident.snapshot.state, incident.snapshot.why];
    refill(this.place, JSON.stringify(isShown ? [address] : [address, this.refused, still]), () => [isShown ? this.film(address) : this.unplayed(address)]);
  }

  // In the place of one that ended too soon: it goes on where that one is.
  film(address) {
    const before = this.place.querySelector("video");
    const poster = relative(this.incident.snapshot.url);
    const video = make("video", { src: address, controls: true, playsinline: true, muted: true, preload: "metadata", poster });
    video.muted = true;
    video.addEventListener("error", () => video.isConnected && this.refuse(address));
    if (!before) return video;
    video.currentTime = before.currentTime;
    if (!before.paused || before.ended) video.play().catch(() => {});
    leave(before);
    return video;
  }

  // The browser does not tell whether it was the clip or the service.
  async refuse(address) {
    this.refused = { address, why: await refusalOf(address) };
    this.update(this.incident);
  }

  unplayed(address) {
    if (!address) return this.picture();
    const { why } = this.refused;
    const text = why ? `The clip cannot be shown now: ${plain(why, this.isAdmin)}.`
      : this.incident.clip.state === "pending" ? "The clip is still being recorded, and cannot be shown yet."
        : "This browser cannot play the clip. Another one may, such as Edge or Safari, or a player on your computer.";
    return make("div", {}, this.picture(), make("p", { role: "status", text }),
      make("div", { class: "bar" }, why ? null : this.download(), make("button", { text: "Try again", onclick: () => this.again() })));
  }

  // With a name that all systems take.
  download() {
    const { camera, start_time, clip } = this.incident;
    const file = `${camera} ${start_time}.mp4`.replace(/[^\p{L}\p{M}\p{N}. -]/gu, "-");
    return make("a", { class: "button", href: relative(clip.url), download: file, text: "Download the clip" });
  }

  again() {
    this.refused = null;
    this.update(this.incident);
    this.place.querySelector("video")?.focus();
  }

  picture() {
    const { snapshot, action, camera } = this.incident;
    if (snapshot.url) return make("img", { class: "still", src: relative(snapshot.url), alt: `${title(action)} on ${camera}` });
    const refusal = { error: snapshot.why ? `No picture: ${snapshot.why}` : "The picture is to come.", id: isKept(this.incident) ? "" : NOT_KEPT };
    return make("p", { class: "empty", text: notShown(refusal, this.isAdmin) });
  }

  close() {
    leave(this.place.querySelector("video"));
  }
}

// A video that is only taken out of the page keeps its connection.
function leave(video) {
  video?.removeAttribute("src");
  video?.load();
}

// Why the service does not give a file; "" if it does.
async function refusalOf(path) {
  try {
    return await fetched(path, {}, async (answer) => {
      if (!answer.ok) return (await answer.json().catch(() => ({}))).error || `the service answers ${answer.status}`;
      await answer.body.cancel();
      return "";
    });
  } catch (problem) {
    return problem.message;
  }
}
