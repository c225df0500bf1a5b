// The list of incidents, and one of them with its picture, its clip and its reasons.

import { get, post } from "./api.js";
import { fill, make } from "./dom.js";
import { notShown } from "./plain.js";
import { counted, LABELS, lasted, sentence, span, title, when } from "./words.js";

const PAGE = 30;
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

export function rowOf(incident, silences) {
  const labels = holding(incident);
  const picture = incident.snapshot.url
    ? make("img", { class: "still", src: incident.snapshot.url, loading: "lazy", alt: "" })
    : make("span", { class: "still none", text: incident.snapshot.state === "pending" ? "picture to come" : "no picture" });
  return make("a", { class: `row ${labels.length ? "seen" : ""}`, href: `#/incidents/${encodeURIComponent(incident.incident)}` },
    picture,
    make("div", {},
      make("p", {}, make("strong", { text: `${title(incident.action)}: ${incident.camera}` })),
      make("p", { text: when(incident.start_time) }),
      make("p", { class: incident.phase === "running" ? "running" : "quiet", text: lasted(incident, silences) }),
      labels.length ? make("p", { class: "quiet", text: LABELS[labels.at(-1)] }) : null));
}

export const emptyList = (camera = "") => ({ camera, incidents: [], hasMore: false, isLoaded: false, pages: 1 });

// What was chosen and read is remembered in `state.list`: who comes back from an incident goes on where they were.
export function incidentsView(state) {
  const memory = state.list;
  const camera = make("select", { id: "of", onchange: choose });
  const rows = make("div", { class: "rows" });
  const more = make("button", { text: "Show earlier ones", hidden: true, onclick: earlier });
  const error = make("p", { class: "error", role: "alert" });
  const element = make("section", {}, make("h1", { text: "Incidents" }),
    make("div", { class: "bar" }, make("label", { for: "of", text: "Camera" }), camera), rows, error, make("div", { class: "bar" }, more));
  const drawn = new Map();
  let newest = null;
  let words = "";
  let why = "";

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

  // Changes with the cameras too: nobody knows whether what went on at one that is away still does.
  const inWords = () => memory.incidents.map((one) => lasted(one, state.silences)).join();

  function choose() {
    Object.assign(memory, emptyList(camera.value));
    draw();
    load();
  }

  // A row that is as it was stays the same element, so that nothing moves under the eyes or loses the focus.
  function rowFor(incident) {
    const text = JSON.stringify(incident) + lasted(incident, state.silences);
    const known = drawn.get(incident.incident);
    if (known && known.text === text) return known.row;
    const row = rowOf(incident, state.silences);
    drawn.set(incident.incident, { text, row });
    return row;
  }

  // A page that stands open for months must not keep a row for each incident of them.
  function forget() {
    const shown = new Set(memory.incidents.map((one) => one.incident));
    for (const incident of drawn.keys()) if (!shown.has(incident)) drawn.delete(incident);
  }

  function draw() {
    const focused = document.activeElement?.getAttribute("href");
    const none = memory.isLoaded ? nothing(why, state.me.role === "admin") : [];
    fill(rows, ...(memory.incidents.length ? memory.incidents.map(rowFor) : none));
    forget();
    if (focused) [...rows.children].find((row) => row.getAttribute("href") === focused)?.focus({ preventScroll: true });
    more.hidden = !memory.hasMore;
    words = inWords();
    options();
  }

  async function ask(before) {
    const of = memory.camera ? `&camera=${encodeURIComponent(memory.camera)}` : "";
    const behind = before ? `&before=${encodeURIComponent(before.incident)}` : "";
    const found = await get(`/api/incidents?limit=${PAGE}${of}${behind}`);
    why = found.why || "";
    return found;
  }

  async function tried(work) {
    const wanted = memory.camera;
    try {
      const found = await work();
      if (wanted !== memory.camera) return;
      error.textContent = "";
      found();
      draw();
    } catch (problem) {
      error.textContent = problem.message;
      newest = null; // the next update tries again
    }
  }

  // The newest ones take the place of those that they are; earlier pages stay.
  const load = () => tried(async () => {
    const found = await ask(null);
    return () => {
      const fresh = new Set(found.incidents.map((one) => one.incident));
      const last = memory.incidents.findLastIndex((one) => fresh.has(one.incident));
      const kept = last >= 0 ? memory.incidents.slice(last + 1) : [];
      const most = memory.pages * PAGE;
      const all = [...found.incidents, ...kept];
      if (!kept.length) memory.hasMore = found.more;
      if (all.length > most) memory.hasMore = true;
      memory.incidents = all.slice(0, most);
      memory.isLoaded = true;
    };
  });

  function earlier() {
    return tried(async () => {
      const found = await ask(memory.incidents[memory.incidents.length - 1]);
      return () => {
        memory.incidents = [...memory.incidents, ...found.incidents];
        memory.hasMore = found.more;
        memory.pages += 1;
      };
    });
  }

  function update() {
    const now = state.incidents.map((one) => one.incident + one.phase + one.snapshot.state + one.labels.length).join();
    const isNew = now !== newest;
    newest = now;
    if (isNew) load();
    if (inWords() !== words) draw();
  }

  if (memory.incidents.length) draw();
  return { element, update };
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

export function incidentView(state, name) {
  const element = make("section");
  let drawn = "";
  let notPlayed = "";
  const clipOf = (incident) => `${incident.clip.url} ${incident.clip.state}`;

  async function act(path, body, message) {
    try {
      draw(await post(`/api/incidents/${encodeURIComponent(name)}/${path}`, body));
    } catch (problem) {
      message.textContent = problem.message;
    }
  }

  function buttons(incident, message) {
    if (!["operator", "admin"].includes(state.me.role)) return null;
    const labels = holding(incident);
    const one = (key) => make("button", { text: LABELS[key], "aria-pressed": String(labels.includes(key)),
      onclick: () => act("labels", { label: key, note: "" }, message) });
    const keep = make("button", { text: "Keep for ever", "aria-pressed": String(incident.keep),
      onclick: () => act("keep", { keep: !incident.keep }, message) });
    // The history goes in its turn: in it, nothing can be kept.
    return make("div", { class: "bar" }, ...Object.keys(LABELS).map(one), isKept(incident) ? keep : null);
  }

  function film(incident) {
    if (incident.clip.url && notPlayed !== clipOf(incident)) {
      const poster = incident.snapshot.url;
      const video = make("video", { src: incident.clip.url, controls: true, playsinline: true, muted: true, preload: "metadata", poster });
      video.addEventListener("error", () => video.isConnected && video.replaceWith(unplayed(incident)));
      return video;
    }
    return picture(incident);
  }

  // A clip keeps the codec of its camera, and not every browser knows each.
  function unplayed(incident) {
    notPlayed = clipOf(incident);
    return make("div", {}, picture(incident),
      make("p", { text: "This browser cannot play the clip. Another one may, such as Edge or Safari, or a player on your computer." }),
      make("div", { class: "bar" }, download(incident), make("button", { text: "Try again", onclick: again })));
  }

  // With a name that all systems take.
  function download(incident) {
    const file = `${incident.camera} ${incident.start_time}.mp4`.replace(/[^\p{L}\p{M}\p{N}. -]/gu, "-");
    return make("a", { class: "button", href: incident.clip.url, download: file, text: "Download the clip" });
  }

  function again() {
    notPlayed = drawn = "";
    update();
  }

  function picture(incident) {
    if (incident.snapshot.url) {
      return make("img", { class: "still", src: incident.snapshot.url, alt: `${title(incident.action)} on ${incident.camera}` });
    }
    const { why } = incident.snapshot;
    const refusal = { error: why ? `No picture: ${why}` : "The picture is to come.", id: isKept(incident) ? "" : NOT_KEPT };
    return make("p", { class: "empty", text: notShown(refusal, state.me.role === "admin") });
  }

  function draw(incident) {
    const how = lasted(incident, state.silences);
    const now = JSON.stringify(incident) + how;
    if (now === drawn) return;
    // A clip that plays goes on although a label comes.
    const playing = element.querySelector("video");
    const keeps = playing && incident.clip.url && playing.getAttribute("src") === incident.clip.url;
    const plays = keeps && !playing.paused && !playing.ended;
    drawn = now;
    const message = make("p", { class: "error", role: "alert" });
    const alone = incident.snapshot.url && incident.clip.url
      ? make("p", {}, make("a", { class: "way", href: incident.snapshot.url, text: "The picture alone" })) : null;
    fill(element,
      make("p", {}, make("a", { class: "way", href: "#/incidents", text: "All incidents" })),
      make("h1", { text: `${title(incident.action)}: ${incident.camera}` }),
      make("div", { class: "split" },
        make("div", {}, keeps ? playing : notPlayed === clipOf(incident) ? unplayed(incident) : film(incident), alone,
          make("div", { class: "crops" }, ...incident.crops.map((src) => make("img", { src, alt: "One of the people" })))),
        make("div", { class: "facts" },
          make("p", {}, make("strong", { text: when(incident.start_time) })),
          make("p", { class: incident.phase === "running" ? "running" : "", text: how + (incident.reason ? `: ${incident.reason}` : "") }),
          make("p", { text: counted(incident.people, "person").replace("persons", "people") + (incident.zones.length ? ` in ${incident.zones.join(", ")}` : "") }),
          buttons(incident, message), message,
          make("h2", { text: "Why it was reported" }),
          make("p", { text: incident.about || inPlain(incident) }), ...measured(incident),
          incident.labels.length ? make("h2", { text: "What people said" }) : null,
          ...incident.labels.map((one) => make("p", { text: `${LABELS[one.label]}, ${one.by || "somebody"}, ${when(one.time)}${one.note ? `: ${one.note}` : ""}` })))));
    if (plays) playing.play().catch(() => {});
  }

  async function update() {
    try {
      draw(await get(`/api/incidents/${encodeURIComponent(name)}`));
    } catch (problem) {
      if (!drawn) fill(element, make("p", { class: "empty", text: problem.message }));
    }
  }

  // A video that is only taken out of the page keeps its connection.
  function close() {
    const video = element.querySelector("video");
    video?.removeAttribute("src");
    video?.load();
  }

  return { element, update, close };
}
