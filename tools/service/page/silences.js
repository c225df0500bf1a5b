// Which cameras show nothing now, and since when: until they do, nobody knows whether an incident there still goes on.

import { cameraState, clock, isSilent } from "./words.js";

const SAME_MS = 10000; // answers come more or less late: a moment as near as this to the known one is the same

export class Silences {
  constructor() {
    this.known = new Map();
  }

  // `cameras`: of the status. A camera that is not there any more shows nothing either.
  update(cameras, now = Date.now()) {
    this.cameras = cameras;
    for (const name of this.known.keys()) if (!(name in cameras)) this.known.delete(name);
    for (const [name, camera] of Object.entries(cameras)) {
      if (!isSilent(cameraState(camera).kind)) this.known.delete(name);
      else this.note(name, camera.through_s ?? camera.since_s, now);
    }
  }

  note(name, seconds, now) {
    const before = this.known.get(name);
    const at = seconds === null ? null : now - 1000 * seconds;
    if (!before || Math.abs(at - before) > SAME_MS) this.known.set(name, at);
  }

  has(name) {
    return this.known.has(name) || !(name in this.cameras);
  }

  // " since 02:20", if that is known.
  since(name) {
    const at = this.known.get(name);
    return at ? ` since ${clock(new Date(at))}` : "";
  }
}
