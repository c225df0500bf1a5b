// The last hour as lines, with axes: values with their unit upwards, the time of day to the right.

import { get } from "./api.js";
import { make, say } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const LEAST_S = 300;
const HOUR_S = 3600;
const ROUND = [1, 2, 5, 10];

// `lines`: [key of the samples, what it is, its dash]. `unit`: behind a value; `least`: the scale goes so far at least.
export class Plot {
  constructor(title, unit, least, lines) {
    this.unit = unit;
    this.least = least;
    this.lines = lines.map(([key, words, dash]) => ({ key, words, path: shape("path", { "stroke-dasharray": dash || "none" }) }));
    this.svg = shape("svg", { class: "plot", viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img" });
    this.svg.append(...[0, 50, 100].map((y) => shape("line", { x1: 0, x2: 100, y1: y, y2: y })), ...this.lines.map((one) => one.path));
    this.most = make("span");
    this.half = make("span");
    this.from = make("span");
    this.middle = make("span");
    this.until = make("span");
    this.now = make("p", { class: "quiet" });
    this.title = title;
    this.element = make("figure", { class: "figure" },
      make("figcaption", { text: title }),
      make("div", { class: "up", "aria-hidden": "true" }, this.most, this.half, make("span", { text: "0" })),
      this.svg,
      make("div", { class: "along", "aria-hidden": "true" }, this.from, this.middle, this.until),
      this.now);
  }

  // `samples`: as /api/recent tells them; `isNow`: whether it has just told them.
  update(samples, isNow = true) {
    const { at } = samples;
    const end = at.length ? at[at.length - 1] : Date.now() / 1000;
    const begin = Math.min(end - LEAST_S, Math.max(end - HOUR_S, at.length ? at[0] : end));
    const values = this.lines.flatMap(({ key }) => samples[key].filter((value) => value !== null));
    const most = rounded(Math.max(...values, this.least));
    for (const { key, path } of this.lines) {
      path.setAttribute("d", pathOf(at, samples[key], samples.every_s, (x) => (100 * (x - begin)) / (end - begin), (y) => 100 - (100 * y) / most));
    }
    say(this.most, `${most}${this.unit}`);
    say(this.half, `${most / 2}`);
    [[this.from, begin], [this.middle, (begin + end) / 2], [this.until, end]].forEach(([place, time]) => say(place, clock(time)));
    const text = this.newest(samples, isNow);
    say(this.now, text);
    this.svg.setAttribute("aria-label", `${this.title}, from ${clock(begin)} to ${clock(end)}. ${text}. The scale goes to ${most}${this.unit}.`);
  }

  // Only the last sample is of now: of a camera that is away, the last value may be of an hour ago.
  newest(samples, isNow) {
    const told = new Map(); // by the sample that they are of
    for (const { key, words } of this.lines) {
      const last = samples[key].findLastIndex((value) => value !== null);
      if (last >= 0) told.set(last, [...(told.get(last) || []), `${words} ${short(samples[key][last])}${this.unit}`]);
    }
    const since = (n) => (isNow && n === samples.at.length - 1 ? "Now" : `Last at ${clock(samples.at[n])}`);
    return [...told].map(([n, texts]) => `${since(n)}: ${texts.join(", ")}`).join(". ") || "Nothing is known yet.";
  }
}

// The plots of a camera, or of all cameras (""). Asked for when there can be a new sample.
export class Plots {
  constructor(camera) {
    this.path = `/api/recent${camera ? `?camera=${encodeURIComponent(camera)}` : ""}`;
    this.plots = [
      new Plot("Pictures a second", "", 2, [["fps", "", ""]]),
      new Plot("Not looked at, in 5 seconds", "", 2, [["drops", "", ""]]),
      new Plot("Age once they have been judged", " ms", 10, [
        ["age_ms_p50", "half of them at most", ""], ["age_ms_p95", "19 of 20 at most (dashed)", "5 4"]]),
    ];
    this.problem = make("p", { class: "quiet", hidden: true });
    this.element = make("div", { class: "plots" }, this.problem, ...this.plots.map((plot) => plot.element));
    this.dueMs = 0;
  }

  async update() {
    if (this.isAsking || Date.now() < this.dueMs) return;
    this.isAsking = true;
    try {
      this.samples = await get(this.path);
      this.dueMs = Date.now() + 1000 * this.samples.every_s;
      this.plots.forEach((plot) => plot.update(this.samples));
      this.problem.hidden = true;
    } catch (problem) {
      this.problem.hidden = false;
      if (this.samples) this.plots.forEach((plot) => plot.update(this.samples, false));
      say(this.problem, `The plots cannot be had now: ${problem.message}.`);
    } finally {
      this.isAsking = false;
    }
  }
}

function shape(tag, settings) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(settings)) element.setAttribute(name, value);
  return element;
}

// The line breaks where nothing is known, and where no sample was taken. A value alone is a short stroke.
function pathOf(at, values, every, x, y) {
  let path = "";
  let before = null;
  values.forEach((value, n) => {
    if (value === null) {
      before = null;
      return;
    }
    const goesOn = before !== null && at[n] - before < 3 * every;
    path += `${goesOn ? "L" : "M"}${x(at[n]).toFixed(2)} ${y(value).toFixed(2)}${goesOn ? "" : "h.01"}`;
    before = at[n];
  });
  return path;
}

// The next of 1, 2, 5, 10, 20, ...
function rounded(value) {
  const ten = 10 ** Math.floor(Math.log10(value));
  return Number((ten * ROUND.find((one) => one * ten >= value * 0.999)).toPrecision(3));
}

function short(value) {
  return String(value >= 100 ? Math.round(value) : Number(value.toPrecision(2)));
}

function clock(seconds) {
  return new Date(1000 * seconds).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}
