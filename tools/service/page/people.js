// The people of a camera as they are seen, and how they are drawn over its picture.

import { relative } from "./api.js";

const KEPT_MS = 10000;
const AGAIN_MS = 10000;
const OLDEST_S = 1;
const COLOURS = { left: "#ff9628", right: "#28a0ff", middle: "#d7d7d7", shape: "#5adc78", alarm: "#ff4f46", box: "#ffffffb0" };
const MIDDLE = 5; // the joints of the head come before the shoulders

// Listens to who is seen: of each stage with rules the frames of the last seconds, { epoch, at, people, now, came }.
export class People {
  constructor(camera, changed) {
    this.rules = {};
    this.shapes = null;
    this.path = `/api/cameras/${encodeURIComponent(camera)}/people`;
    this.changed = changed;
    this.listen();
  }

  listen() {
    this.stream = new EventSource(relative(this.path));
    this.stream.onmessage = (event) => {
      this.take(JSON.parse(event.data));
      this.changed();
    };
    // The browser connects again after an answer that ended, but not after one that was refused.
    this.stream.onerror = () => {
      if (this.stream.readyState === EventSource.CLOSED) this.timer = setTimeout(() => this.listen(), AGAIN_MS);
    };
  }

  take({ stage, ...line }) {
    const rules = (this.rules[stage] ||= { shapes: null, frames: [] });
    if (line.zones) {
      rules.shapes = line;
      const all = Object.values(this.rules).map((one) => one.shapes).filter(Boolean);
      this.shapes = { ...line, zones: Object.assign({}, ...all.map((one) => one.zones)), lines: Object.assign({}, ...all.map((one) => one.lines)), floor: Math.min(...all.map((one) => one.floor)) };
      return;
    }
    const now = performance.now();
    rules.frames.push({ ...line, came: now });
    while (rules.frames.length && now - rules.frames[0].came > KEPT_MS) rules.frames.shift();
  }

  // The people of the picture at this time of the stream, or shortly before; null if nobody has looked at it yet.
  at(epoch, at) {
    const fits = (one) => one.epoch === epoch && one.at !== null && one.at <= at + 0.02 && one.at > at - OLDEST_S;
    return this.together((frames) => frames.findLast(fits));
  }

  // All that are known, of one stage: others see the same people.
  frames() {
    return Object.values(this.rules)[0]?.frames || [];
  }

  newest() {
    const since = performance.now() - 3000 * OLDEST_S;
    return this.together((frames) => frames.findLast((one) => one.came > since));
  }

  // Several stages with rules see the same people, and each has rules of its own.
  together(chosen) {
    const found = Object.values(this.rules).map(({ frames }) => chosen(frames)).filter(Boolean);
    if (!found.length) return null;
    const people = new Map(found.flatMap((one) => one.people).map((person) => [person.id, person]));
    return { ...found[0], people: [...people.values()], now: found.flatMap((one) => one.now) };
  }

  again() {
    this.close();
    this.listen();
  }

  close() {
    clearTimeout(this.timer);
    this.stream.onerror = null;
    this.stream.close();
  }
}

// Draws on a canvas that lies over the picture and has its shape.
export function draw(canvas, shapes, frame) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio);
  const height = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const pen = canvas.getContext("2d");
  pen.clearRect(0, 0, width, height);
  if (!width || !shapes) return;
  const size = { width, height, line: Math.max(1.5, 2 * ratio), letter: Math.round(13 * ratio) };
  const alarmed = new Set((frame?.now || []).flatMap((one) => one.shapes));
  for (const [name, corners] of Object.entries(shapes.zones)) outline(pen, size, name, corners, true, alarmed.has(name));
  for (const [name, corners] of Object.entries(shapes.lines)) outline(pen, size, name, corners, false, alarmed.has(name));
  for (const person of frame?.people || []) {
    const said = frame.now.filter((one) => one.ids.includes(person.id)).map((one) => one.action.replaceAll("_", " "));
    figure(pen, size, shapes, person, said);
  }
}

function outline(pen, size, name, corners, isClosed, isAlarmed) {
  pen.strokeStyle = isAlarmed ? COLOURS.alarm : COLOURS.shape;
  pen.lineWidth = size.line;
  pen.beginPath();
  corners.forEach(([x, y], n) => pen[n ? "lineTo" : "moveTo"](x * size.width, y * size.height));
  if (isClosed) pen.closePath();
  pen.stroke();
  write(pen, size, name, corners[0][0] * size.width, corners[0][1] * size.height, pen.strokeStyle);
}

function figure(pen, size, shapes, person, said) {
  const joint = (n) => {
    const [x, y, c] = person.joints.slice(3 * n, 3 * n + 3);
    return c >= shapes.floor && x !== null && y !== null ? [x * size.width, y * size.height] : null;
  };
  pen.lineWidth = 1.5 * size.line;
  for (const [from, to] of person.joints.length ? shapes.bones : []) {
    const [begin, end] = [joint(from), joint(to)];
    if (!begin || !end) continue;
    const isSame = from >= MIDDLE && from % 2 === to % 2;
    pen.strokeStyle = COLOURS[isSame ? (from % 2 ? "left" : "right") : "middle"];
    pen.beginPath();
    pen.moveTo(...begin);
    pen.lineTo(...end);
    pen.stroke();
  }
  const [x1, y1, x2, y2] = person.box.map((value, n) => value * (n % 2 ? size.height : size.width));
  pen.strokeStyle = said.length ? COLOURS.alarm : COLOURS.box;
  pen.lineWidth = size.line;
  pen.strokeRect(x1, y1, x2 - x1, y2 - y1);
  if (said.length) write(pen, size, said.join(", "), x1, y1, COLOURS.alarm);
}

function write(pen, size, text, x, y, colour) {
  pen.font = `600 ${size.letter}px system-ui, sans-serif`;
  const width = pen.measureText(text).width + size.letter / 2;
  const left = Math.max(0, Math.min(x, size.width - width));
  const top = Math.max(0, y - 1.5 * size.letter);
  pen.fillStyle = "#000b";
  pen.fillRect(left, top, width, 1.4 * size.letter);
  pen.fillStyle = colour;
  pen.fillText(text, left + size.letter / 4, top + size.letter * 1.05);
}
