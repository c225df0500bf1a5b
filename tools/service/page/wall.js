// All cameras: a still of each, first those where something happens, then those without a picture.

import { fill, make } from "./dom.js";
import { Still } from "./stills.js";
import { cameraState, isSilent, lasted, title } from "./words.js";

const GRAVITY = { alarm: 2, warning: 1, info: 0 };
const gravity = (incident) => GRAVITY[incident.severity] ?? GRAVITY.warning;

// Of each camera, the gravest first, and of these the newest.
function byCamera(running) {
  const found = new Map();
  for (const one of running) found.set(one.camera, [...(found.get(one.camera) || []), one]);
  for (const incidents of found.values()) incidents.sort((one, other) => gravity(other) - gravity(one));
  return found;
}

export function wallView(state) {
  const tiles = new Map();
  const element = make("section", { class: "wall", "aria-label": "Cameras" });
  const empty = make("p", { class: "empty", text: "There are no cameras in this run." });

  function update() {
    const cameras = Object.entries(state.status.cameras);
    const busy = byCamera(state.running);
    for (const [name, tile] of tiles) {
      if (!(name in state.status.cameras)) {
        tile.still.close();
        tiles.delete(name);
      }
    }
    const place = ([name, camera]) => (busy.has(name) ? 0 : cameraState(camera).kind === "bad" ? 1 : 2);
    cameras.sort((one, other) => place(one) - place(other) || one[0].localeCompare(other[0]));
    for (const [name, camera] of cameras) {
      if (!tiles.has(name)) tiles.set(name, new Tile(name, state.me.role === "admin"));
      tiles.get(name).update(camera, busy.get(name) || [], state.silences);
    }
    const wanted = cameras.map(([name]) => tiles.get(name).element);
    // Moving an element takes the focus from it: only if the order has changed.
    if (!wanted.length) fill(element, empty);
    else if (wanted.length !== element.children.length || wanted.some((one, n) => element.children[n] !== one)) {
      const focused = document.activeElement;
      fill(element, ...wanted);
      if (wanted.includes(focused)) focused.focus();
    }
  }

  const close = () => tiles.forEach((tile) => tile.still.close());
  return { element, update, close };
}

class Tile {
  constructor(name, isAdmin) {
    this.isAdmin = isAdmin;
    this.still = new Still(name, isAdmin);
    this.state = make("span", { class: "state" });
    this.happens = make("span", { class: "running" });
    this.element = make("a", { class: "tile", href: `#/camera/${encodeURIComponent(name)}` },
      this.still.element, make("div", { class: "caption" }, make("strong", { text: name }), this.happens, this.state));
  }

  // `incidents`: that go on there, the one to be told of first.
  update(camera, incidents, silences) {
    const { text, kind, why } = cameraState(camera, this.isAdmin);
    this.state.textContent = text;
    this.state.className = `state ${kind}`;
    this.state.title = why;
    this.still.silent(isSilent(kind) ? camera.through_s : 0);
    this.happens.textContent = happening(incidents, silences);
    this.element.classList.toggle("alarm", incidents.length > 0);
    this.element.classList.toggle("unread", silences.isUnread);
    this.element.classList.toggle("lost", kind === "bad");
  }
}

function happening([first, ...others], silences) {
  if (!first) return silences.isUnread ? "not known whether something happens" : "";
  return `${title(first.action)}: ${lasted(first, silences)}${others.length ? ` (+${others.length})` : ""}`;
}
