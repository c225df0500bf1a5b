// Draws zones and lines over the picture of a camera: with the mouse, a finger, or the keyboard (Enter sets a corner in the
// middle, arrows move it, Tab leads from corner to corner, Delete removes one). Nothing is changed before "Save".

import { get, post } from "./api.js";
import { fill, make, say } from "./dom.js";
import { counted } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const STEP = 0.01;
const NEW = [["new zone", "zone/"], ["new line", "line/"]];
const BOARD = "Where the corners are: Enter sets one in the middle, arrows move it, Delete removes it";
const REACH = 21; // half of what a finger needs to hit a corner, in pixels of the page

function draw(tag, settings) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(settings)) element.setAttribute(name, value);
  return element;
}

// `live`: the view of the camera (live.js). `closed` is called when the editor is left.
export class ShapeEditor {
  constructor(camera, live, closed) {
    this.camera = camera;
    this.live = live;
    this.closed = closed;
    this.crossings = new Crossings();
    this.points = [];
    this.kind = "zone";
    this.path = `/api/cameras/${encodeURIComponent(camera)}/shapes`;
    this.outline = draw("svg", { viewBox: "0 0 1 1", preserveAspectRatio: "none" });
    this.handles = draw("svg", {});
    this.board = make("div", { class: "board", tabindex: "0", role: "application", "aria-label": BOARD }, this.outline, this.handles);
    this.board.addEventListener("click", (event) => this.onClick(event));
    this.board.addEventListener("keydown", (event) => this.onEnter(event));
    this.which = make("select", { id: "shape", onchange: () => this.other(() => this.choose()) });
    this.stage = make("select", { id: "shape-rules", onchange: () => this.other(() => this.list()) });
    this.name = make("input", { id: "shape-name", maxlength: "60", autocomplete: "off" });
    this.forAll = make("input", { type: "checkbox", id: "shape-all" });
    this.hint = make("p", { class: "quiet" });
    this.inside = make("p", { class: "inside" });
    this.message = make("p", { class: "error", role: "alert" });
    this.difference = make("pre", { class: "diff", hidden: true });
    const button = (text, onclick) => make("button", { text, onclick });
    this.save = button("Save", () => this.send(true));
    this.remove = button("Remove it", () => this.send(true, true));
    this.element = make("section", { class: "editor", "aria-label": "Zones and lines" },
      make("h2", { text: "Zones and lines" }),
      this.stageBar = make("div", { class: "bar", hidden: true }, make("label", { for: "shape-rules", text: "Rules" }), this.stage),
      make("div", { class: "bar" }, make("label", { for: "shape", text: "Draw" }), this.which),
      make("div", { class: "bar" }, make("label", { for: "shape-name", text: "Name" }), this.name,
        make("label", {}, this.forAll, " for all cameras")),
      this.hint, this.inside,
      make("div", { class: "bar" }, button("Undo a corner", () => this.undo()), button("What would change?", () => this.send(false)),
        this.save, this.remove, button("Close", () => this.leave())),
      this.message, this.difference);
    live.picture.append(this.board);
    this.timer = setInterval(() => this.count(), 500);
    this.load();
  }

  // Nothing that was drawn is lost unasked.
  leave() {
    if (!this.isChanged || confirm("The drawing is not saved. Close it all the same?")) this.close();
  }

  // Another one is to be drawn, unless that would lose what was drawn.
  other(turn) {
    if (!this.isChanged || confirm("The drawing is not saved. Leave it all the same?")) return turn();
    this.stage.value = this.shown.stage;
    this.which.value = this.shown.which;
  }

  close() {
    clearInterval(this.timer);
    this.board.remove();
    this.element.remove();
    this.closed();
  }

  // `keep`: which one is to be shown, such as `zone/bed`; without it, the first that there is.
  async load(keep) {
    let problems = "";
    try {
      const known = await get(this.path);
      this.stages = known.stages;
      this.message.textContent = problems = known.problems.join("; ");
    } catch (problem) {
      this.message.textContent = problem.message;
      return;
    }
    if (!this.stages.length) {
      this.message.textContent ||= "The graph has no stage with rules: there is nothing that could ask about zones.";
      return;
    }
    const chosen = this.stage.value;
    fill(this.stage, ...this.stages.map((one) => make("option", { value: one.stage, text: `${one.stage} (${one.file})` })));
    if (this.stages.some((one) => one.stage === chosen)) this.stage.value = chosen;
    this.stageBar.hidden = this.stages.length < 2;
    this.list(keep);
    this.message.textContent ||= problems;
  }

  get rules() {
    return this.stages.find((one) => one.stage === this.stage.value);
  }

  list(keep) {
    const known = ["zone", "line"].flatMap((kind) => Object.keys(this.rules[kind]).map((name) => [kind, name]));
    const options = [...NEW, ...known.map(([kind, name]) => [`${kind} ${name}`, `${kind}/${name}`])];
    fill(this.which, ...options.map(([text, value]) => make("option", { text, value })));
    const first = options[NEW.length] || options[0];
    this.which.value = (options.find(([, value]) => value === keep) || first)[1];
    this.choose();
  }

  choose() {
    const [kind, ...rest] = this.which.value.split("/");
    const name = rest.join("/");
    this.shown = { stage: this.stage.value, which: this.which.value };
    const known = this.rules[kind][name];
    this.kind = kind;
    this.name.value = name;
    this.name.disabled = Boolean(known);
    this.forAll.checked = known?.for === "all";
    this.forAll.disabled = Boolean(known);
    this.message.textContent = "";
    this.points = known ? this.fractions(known.points) : [];
    this.isChanged = false;
    this.remove.hidden = !known;
    this.difference.hidden = true;
    this.redraw();
  }

  // Files may have pixels of the frame.
  fractions(points) {
    const size = this.live.people?.shapes?.size;
    const isPixels = points.some((point) => point.some((value) => value > 1));
    this.lacksSize = isPixels && !size;
    if (!isPixels) return points.map(([x, y]) => [x, y]);
    if (!size) {
      this.message.textContent = "This one is in pixels, and the size of the picture is not known yet: draw it anew.";
      return [];
    }
    return points.map(([x, y]) => [x / size[0], y / size[1]]);
  }

  onClick(event) {
    if (event.target.tagName === "circle") return;
    const box = this.board.getBoundingClientRect();
    this.add([(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height]);
  }

  add([x, y]) {
    const most = this.kind === "line" ? 2 : 100;
    if (this.points.length >= most) return;
    this.points.push(within(x, y));
    this.change();
  }

  undo() {
    if (this.points.pop()) this.change();
  }

  // For those who have no pointer: one more corner, which the arrows then move.
  onEnter(event) {
    if (event.key !== "Enter") return;
    this.add([0.5, 0.5]);
    this.focusCorner(this.points.length - 1);
    event.preventDefault();
  }

  focusCorner(n) {
    (this.handles.querySelectorAll(".reach")[n] || this.board).focus();
  }

  change() {
    this.isChanged = true;
    this.redraw();
  }

  redraw() {
    const form = this.kind === "line" ? "polyline" : "polygon";
    this.outline.replaceChildren(draw(form, { points: this.points.map((point) => point.join(",")).join(" ") }));
    this.handles.replaceChildren(...this.points.flatMap((point, n) => this.handle(point, n)));
    this.crossings.begin(this.kind === "line" && this.points.length === 2 ? this.points : null);
    const least = this.kind === "line" ? 2 : 3;
    const missing = least - this.points.length;
    this.hint.textContent = missing > 0
      ? `Click on the picture, or press Enter on it: ${counted(missing, this.kind === "line" ? "end" : "corner")} to go.`
      : this.kind === "line" ? "Drag the ends to where they belong." : "Click to add corners, drag them to where they belong.";
    this.save.disabled = missing > 0;
    this.count();
  }

  handle([x, y], n) {
    const place = { cx: `${100 * x}%`, cy: `${100 * y}%` };
    const dot = draw("circle", { ...place, r: 9, class: "dot" });
    const circle = draw("circle", { ...place, r: REACH, class: "reach", tabindex: 0, role: "button", "aria-label": `Corner ${n + 1}` });
    circle.dot = dot;
    circle.addEventListener("pointerdown", (event) => {
      circle.setPointerCapture(event.pointerId);
      event.preventDefault();
      circle.focus();
    });
    circle.addEventListener("pointermove", (event) => {
      if (!circle.hasPointerCapture(event.pointerId)) return;
      const box = this.board.getBoundingClientRect();
      this.move(n, circle, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
    });
    circle.addEventListener("keydown", (event) => this.onKey(event, n, circle));
    return [circle, dot];
  }

  onKey(event, n, circle) {
    const step = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[event.key];
    if (step) this.move(n, circle, this.points[n][0] + step[0], this.points[n][1] + step[1]);
    else if (event.key === "Delete" || event.key === "Backspace") {
      this.points.splice(n, 1);
      this.change();
      this.focusCorner(Math.min(n, this.points.length - 1));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // The handle stays the same element while it is dragged.
  move(n, circle, x, y) {
    const to = within(x, y);
    if (to.join() === this.points[n].join()) return;
    this.points[n] = to;
    this.isChanged = true;
    for (const one of [circle, circle.dot]) {
      one.setAttribute("cx", `${100 * this.points[n][0]}%`);
      one.setAttribute("cy", `${100 * this.points[n][1]}%`);
    }
    this.crossings.begin(this.kind === "line" && this.points.length === 2 ? this.points : null);
    this.outline.firstChild.setAttribute("points", this.points.map((point) => point.join(",")).join(" "));
    this.count();
  }

  // Who stands in it now, or went over it, by the middle of the lower edge of their box; and what rules say of them.
  count() {
    if (this.lacksSize && !this.isChanged && this.live.people?.shapes?.size) return this.choose();
    const frame = this.live.people?.newest();
    this.crossings.take(this.live.people?.frames() || []);
    if (!frame || this.points.length < (this.kind === "line" ? 2 : 3)) return say(this.inside, "");
    say(this.inside, this.kind === "line" ? this.overLine(frame) : this.inZone(frame));
  }

  inZone(frame) {
    const inside = frame.people.filter((person) => contains(this.points, ...feet(person)));
    const ids = new Set(inside.map((person) => person.id));
    const many = inside.length ? `${people(inside.length)} in it now.` : "Nobody in it now.";
    const of = frame.now.filter((one) => one.ids.some((id) => ids.has(id)));
    return `${many}${inside.length ? said(of) : ""}${this.asking(frame)}`;
  }

  overLine(frame) {
    const { rightward, leftward } = this.crossings;
    const went = `Since you drew it so: ${people(rightward)} went to the right of it, and ${leftward} to the left, as seen from its first end.`;
    return `${went}${this.asking(frame)}`;
  }

  // Rules that ask about this zone or line and fire now, also on somebody who stands elsewhere.
  asking(frame) {
    const name = this.name.value.trim();
    const firing = [...new Set(frame.now.filter((one) => one.shapes.includes(name)).map((one) => spaced(one.action)))];
    return firing.length ? ` Rules that ask about it and fire: ${firing.join(", ")}.` : "";
  }

  nameless() {
    this.message.textContent = "Give it a name first.";
    this.name.focus();
  }

  // A new one with the name of another would take its place.
  mayBe(name) {
    const known = this.rules[this.kind];
    if (!Object.hasOwn(known, name)) return true;
    return confirm(`${name} is there already${known[name].for === "all" ? ", for all cameras" : ""}: replace it?`);
  }

  async send(save, removes = false) {
    if (!this.stages?.length) return;
    const name = this.name.value = this.name.value.trim().replace(/\s+/g, "_"); // rules ask by one word
    this.message.textContent = "";
    this.difference.hidden = true;
    if (!name) return this.nameless();
    if (removes && !confirm(`Remove ${name} from ${this.rules.file}? Rules that ask about it stop the change.`)) return;
    if (save && !this.name.disabled && !this.mayBe(name)) return;
    const body = { stage: this.rules.stage, kind: this.kind, name, points: removes ? null : this.points, save,
      for: this.forAll.checked ? "all" : "camera", version: this.rules.version };
    try {
      const answer = await post(this.path, body);
      this.difference.textContent = answer.diff || "Nothing would change.";
      this.difference.hidden = false;
      if (!answer.saved) return;
      await this.load(removes ? NEW[0][1] : `${this.kind}/${name}`);
      this.difference.hidden = false;
      if (removes) this.which.focus();
      this.hint.textContent = `Saved. The rules go on with it; the file of before is ${answer.backup}.`;
    } catch (problem) {
      this.message.textContent = problem.message;
    }
  }
}

const spaced = (name) => name.replaceAll("_", " ");
const people = (n) => (n === 1 ? "1 person" : `${n} people`);
const feet = ({ box }) => [(box[0] + box[2]) / 2, box[3]];

function said(now) {
  if (!now.length) return " No rule says anything of them.";
  const ids = new Map();
  for (const one of now) ids.set(one.action, new Set([...(ids.get(one.action) || []), ...one.ids]));
  return ` The rules say: ${[...ids].map(([action, of]) => `${spaced(action)}${of.size > 1 ? ` (${people(of.size)})` : ""}`).join(", ")}.`;
}

// Who went over a line, and to which side: of the way from its first end to its second one.
class Crossings {
  begin(line) {
    this.line = line && line.map((point) => [...point]);
    this.rightward = this.leftward = 0;
    this.before = new Map();
    this.came = performance.now();
  }

  // `frames`: of the last seconds, { people, came }, each with the time at which it came.
  take(frames) {
    if (!this.line) return;
    for (const frame of frames.filter((one) => one.came > this.came)) {
      for (const person of frame.people) {
        const at = feet(person);
        const from = this.before.get(person.id);
        if (from) this.note(from, at);
        this.before.set(person.id, at);
      }
      this.came = frame.came;
    }
  }

  note(from, at) {
    const [begin, end] = this.line;
    if (Math.sign(side(begin, end, from)) === Math.sign(side(begin, end, at))) return;
    if (Math.sign(side(from, at, begin)) === Math.sign(side(from, at, end))) return;
    if (side(begin, end, at) > 0) this.rightward += 1;
    else this.leftward += 1;
  }
}

// Above 0 if a point lies to the right of the way from `begin` to `end`, for y goes down.
function side(begin, end, point) {
  return (end[0] - begin[0]) * (point[1] - begin[1]) - (end[1] - begin[1]) * (point[0] - begin[0]);
}

// In the picture, as exact as the file will have it.
function within(x, y) {
  return [x, y].map((value) => Math.round(1000 * Math.min(1, Math.max(0, value))) / 1000);
}

// Boxes end at the picture's border, so the feet of people whom it cuts lie on it: a zone that reaches it has them inside.
function contains(drawn, x, y) {
  const points = drawn.map((corner) => corner.map((value) => (value >= 1 ? 1.001 : value)));
  let isInside = false;
  points.forEach(([x1, y1], n) => {
    const [x2, y2] = points[(n + 1) % points.length];
    if ((y1 > y) !== (y2 > y) && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) isInside = !isInside;
  });
  return isInside;
}
