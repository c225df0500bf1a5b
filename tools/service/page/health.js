// How the run is: troubles, events that wait to be sent, the last hour as plots, drops by camera, the stages. All is changed in
// its place, so that nothing scrolls away and what was selected stays so.

import { Listing, make, say } from "./dom.js";
import { plain } from "./plain.js";
import { Plots } from "./plots.js";
import { cameraState, counted, dropsInWords, sentence, span } from "./words.js";

const SOON_S = 5;
const HEAD = ["Stage", "Busy", "Waiting", "Each takes", "A second", "Restarts"];

export function healthView(state) {
  const reason = make("p");
  const facts = make("p", { class: "quiet" });
  const plots = new Plots("");
  const troubles = new Lines("None.");
  const waiting = new Lines("Nothing: everything has arrived.");
  const drops = new Lines("None: every picture that came was looked at.");
  const body = make("tbody");
  const stages = new Listing(body, stageRow);
  const element = make("section", {},
    make("h1", { text: "Health" }), reason, facts,
    make("h2", { text: "Troubles" }), troubles.element,
    make("h2", { text: "Waiting to be sent" }), waiting.element,
    make("h2", { text: "The last hour, all cameras" }), plots.element,
    make("h2", { text: "Pictures that came and were not looked at" }), drops.element,
    make("h2", { text: "Stages" }),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Stages" }, make("table", {},
      make("thead", {}, make("tr", {}, ...HEAD.map((text, n) => make("th", { scope: "col", class: n ? "number" : "", text })))),
      body)));

  function update() {
    const status = state.status;
    const isAdmin = state.me.role === "admin";
    const told = ({ where, why, since_s }) => [`${where} ${why}`, `${where}: ${plain(why, isAdmin)} (for ${span(since_s)})`];
    say(reason, plain(status.health.reason, isAdmin));
    say(facts, `Running for ${span(status.uptime_s)}, with ${(status.memory_mb / 1000).toFixed(1)} GB of memory. ${status.limit ? `${sentence(plain(status.limit.text, isAdmin))}.` : ""}`);
    troubles.update([...lost(status, isAdmin), ...status.troubles.map(told)]);
    waiting.update(Object.entries(status.outbox || {}).filter(([, one]) => one.oldest_s > SOON_S || one.dead_letters).map(sinkLine));
    drops.update(Object.entries(status.cameras).filter(([, one]) => one.drops).map(([name, one]) => [name, `${name}: ${dropsInWords(one)}`]));
    stages.update(Object.entries(status.stages));
    plots.update();
  }

  return { element, update };
}

// A list of sentences, or one that says that there are none.
class Lines {
  constructor(none) {
    this.none = make("p", { class: "empty", text: none });
    this.list = make("ul");
    this.listing = new Listing(this.list, () => {
      const element = make("li", { text: " " });
      return { element, update: ([text, kind]) => this.tell(element, text, kind) };
    });
    this.element = make("div", {}, this.none, this.list);
  }

  tell(element, text, kind = "") {
    element.className = kind;
    say(element, text);
  }

  // `entries`: [key, text], or [key, text, kind], in their order.
  update(entries) {
    this.listing.update(entries.map(([key, ...one]) => [key, one]));
    this.none.hidden = entries.length > 0;
    this.list.hidden = !entries.length;
  }
}

// The cameras without a picture, each in red.
function lost(status, isAdmin) {
  const found = Object.entries(status.cameras).map(([name, camera]) => [name, cameraState(camera, isAdmin)]);
  return found.filter(([, { kind }]) => kind === "bad")
    .map(([name, { text, why }]) => [`camera ${name}`, `${name}: ${text}${why ? `: ${why}` : ""}`, "bad"]);
}

function sinkLine([name, one]) {
  const age = one.oldest_s === null ? "" : `, the oldest for ${span(one.oldest_s)}`;
  const dead = one.dead_letters ? `; ${counted(one.dead_letters, "event")} could never be delivered` : "";
  return [name, `${name}: ${counted(one.waiting, "event")}${age}${dead}`];
}

function stageRow(name) {
  const cells = HEAD.slice(1).map(() => make("td", { class: "number", text: " " }));
  const element = make("tr", {}, make("td", { text: name }), ...cells);
  const update = (one) => [`${Math.round(one.busy * 100)} %`, one.queue, one.latency_ms_p50 === null ? "" : `${one.latency_ms_p50.toFixed(1)} ms`,
    one.fps.toFixed(1), one.restarts].forEach((text, n) => say(cells[n], String(text)));
  return { element, update };
}
