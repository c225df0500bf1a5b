// What nobody can know now, and since when. While a camera shows nothing, nobody knows whether an incident there still goes on;
// while the incidents cannot be read, nobody knows of any.

import { cameraState, clock, isSilent } from "./words.js";

const SAME_MS = 10000; // answers come more or less late: a moment as near as this to the known one is the same

const since = (at) => (at ? ` since ${clock(new Date(at))}` : "");

export class Silences {
  constructor() {
    this.known = new Map();
    this.isUnread = false;
    this.readAt = null;
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

  // `isRead`: whether the service could just tell which incidents go on.
  read(isRead, now = Date.now()) {
    this.isUnread = !isRead;
    if (isRead) this.readAt = now;
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
    return since(this.known.get(name));
  }

  unreadSince() {
    return since(this.readAt);
  }
}
