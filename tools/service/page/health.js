// How the run is: troubles, what waits to be sent, the stages, and the last minutes as two plots.

import { fill, make } from "./dom.js";
import { counted, span } from "./words.js";

const SOON_S = 5;
const SVG = "http://www.w3.org/2000/svg";

export function healthView(state) {
  const element = make("section");

  function update() {
    const status = state.status;
    fill(element,
      make("h1", { text: "Health" }),
      make("p", { text: status.health.reason }),
      make("p", { class: "quiet", text: `Running for ${span(status.uptime_s)}, with ${(status.memory_mb / 1000).toFixed(1)} GB of memory. ${status.limit ? status.limit.text : ""}` }),
      make("h2", { text: "Troubles" }), troubles(status),
      make("h2", { text: "Waiting to be sent" }), sinks(status),
      make("h2", { text: "Pictures a second, all cameras" }), plot(state.history.map((one) => one.fps), "pictures a second", ""),
      make("h2", { text: "How old pictures are when they are judged, slowest camera" }), plot(state.history.map((one) => one.age), "milliseconds", " ms"),
      make("h2", { text: "Stages" }), stages(status));
  }

  return { element, update };
}

function troubles(status) {
  if (!status.troubles.length) return make("p", { class: "empty", text: "None." });
  return make("ul", {}, ...status.troubles.map((one) => make("li", { text: `${one.where}: ${one.why} (for ${span(one.since_s)})` })));
}

function sinks(status) {
  const waiting = Object.entries(status.outbox || {}).filter(([, one]) => one.oldest_s > SOON_S || one.dead_letters);
  if (!waiting.length) return make("p", { class: "empty", text: "Nothing: everything has arrived." });
  return make("ul", {}, ...waiting.map(([name, one]) => {
    const age = one.oldest_s === null ? "" : `, the oldest for ${span(one.oldest_s)}`;
    const dead = one.dead_letters ? `; ${counted(one.dead_letters, "event")} could never be delivered` : "";
    return make("li", { text: `${name}: ${counted(one.waiting, "event")}${age}${dead}` });
  }));
}

function stages(status) {
  const head = ["Stage", "Busy", "Waiting", "Each takes", "A second", "Restarts"];
  const row = ([name, one]) => make("tr", {}, make("td", { text: name }),
    ...[`${Math.round(one.busy * 100)} %`, one.queue, one.latency_ms_p50 === null ? "" : `${one.latency_ms_p50.toFixed(1)} ms`,
      one.fps.toFixed(1), one.restarts].map((text) => make("td", { class: "number", text: String(text) })));
  return make("div", { class: "scroll" }, make("table", {},
    make("thead", {}, make("tr", {}, ...head.map((text, n) => make("th", { scope: "col", class: n ? "number" : "", text })))),
    make("tbody", {}, ...Object.entries(status.stages).map(row))));
}

function plot(values, unit, suffix) {
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known, 1e-9);
  const step = 100 / Math.max(1, values.length - 1);
  let path = "";
  let isDown = false;
  values.forEach((value, n) => {
    if (value === null) {
      isDown = false;
      return;
    }
    path += `${isDown ? "L" : "M"}${(n * step).toFixed(2)} ${(38 - (36 * value) / most).toFixed(2)}`;
    isDown = true;
  });
  const now = known.length ? known[known.length - 1] : null;
  const words = now === null ? "not known" : `now ${now.toFixed(now < 10 ? 1 : 0)}${suffix}, at most ${most.toFixed(most < 10 ? 1 : 0)}${suffix}`;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "plot");
  svg.setAttribute("viewBox", "0 0 100 40");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${unit}: ${words}`);
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  svg.append(line);
  return make("div", {}, svg, make("p", { class: "quiet", text: words }));
}
