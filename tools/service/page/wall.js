// All cameras: a still of each, first those where something happens, then those without a picture.

import { fill, make } from "./dom.js";
import { Still } from "./stills.js";
import { cameraState, isSilent, lasted, title } from "./words.js";

export function wallView(state) {
  const tiles = new Map();
  const element = make("section", { class: "wall", "aria-label": "Cameras" });
  const empty = make("p", { class: "empty", text: "There are no cameras in this run." });

  function update() {
    const cameras = Object.entries(state.status.cameras);
    const busy = new Map(state.running.map((one) => [one.camera, one]));
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
      tiles.get(name).update(camera, busy.get(name), state.silences);
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

  update(camera, incident, silences) {
    const { text, kind, why } = cameraState(camera, this.isAdmin);
    this.state.textContent = text;
    this.state.className = `state ${kind}`;
    this.state.title = why;
    this.still.silent(isSilent(kind) ? camera.through_s : 0);
    this.happens.textContent = incident ? `${title(incident.action)}: ${lasted(incident, silences)}` : "";
    this.element.classList.toggle("alarm", Boolean(incident));
    this.element.classList.toggle("lost", kind === "bad");
  }
}
