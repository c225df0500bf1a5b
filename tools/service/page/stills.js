// The newest picture of a camera in an <img>: asked for again and again while it can be seen, one request at a time. A picture
// after which no newer one came for a while is dimmed, and says how old it is.

import { fetched } from "./api.js";
import { notShown } from "./plain.js";
import { span } from "./words.js";

const EVERY_MS = 2000;
const RETRY_MS = 10000;
const OLD_MS = 15000;
const TICK_MS = 1000;

const open = new Set();
let ticking = 0;

function tick() {
  for (const still of open) still.tell();
}

export class Still {
  constructor(camera, isAdmin = false) {
    this.camera = camera;
    this.isAdmin = isAdmin;
    this.image = document.createElement("img");
    this.image.className = "still";
    this.image.alt = `The newest picture of ${camera}`;
    this.note = document.createElement("div");
    this.note.className = "still none";
    this.note.textContent = "no picture yet";
    this.age = document.createElement("p");
    this.age.className = "age";
    this.age.hidden = true;
    this.element = document.createElement("div");
    this.element.className = "holder";
    this.element.append(this.note, this.age);
    this.isHidden = false; // pictures may not leave, to protect faces
    this.tag = "";
    this.isSeen = false;
    this.timer = 0;
    this.silentSince = 0;
    this.watcher = new IntersectionObserver(([entry]) => {
      this.isSeen = entry.isIntersecting;
      if (this.isSeen) this.next(0);
    });
    this.watcher.observe(this.element);
    open.add(this);
    ticking ||= setInterval(tick, TICK_MS);
  }

  close() {
    this.watcher.disconnect();
    clearTimeout(this.timer);
    this.isClosed = true;
    open.delete(this);
    if (!open.size) {
      clearInterval(ticking);
      ticking = 0;
    }
    URL.revokeObjectURL(this.image.src);
  }

  next(ms) {
    clearTimeout(this.timer);
    if (!this.isClosed && this.isSeen) this.timer = setTimeout(() => this.look(), ms);
  }

  async look() {
    if (document.hidden || this.isLooking) return this.next(EVERY_MS);
    this.isLooking = true;
    let pause = EVERY_MS;
    try {
      const headers = this.tag ? { "If-None-Match": this.tag } : {};
      const path = `/api/cameras/${encodeURIComponent(this.camera)}/picture.jpg`;
      await fetched(path, { headers }, async (answer) => {
        if (answer.ok) {
          const picture = await answer.blob();
          this.tag = answer.headers.get("ETag") || "";
          this.show(picture);
        } else if (answer.status !== 304) {
          this.say(await answer.json().catch(() => ({})));
          pause = RETRY_MS;
        }
      });
    } catch {
      pause = RETRY_MS;
    } finally {
      this.isLooking = false;
    }
    this.next(pause);
  }

  get hasPicture() {
    return this.image.isConnected;
  }

  show(blob) {
    if (this.isClosed) return;
    const before = this.image.src;
    this.image.src = URL.createObjectURL(blob);
    if (before) URL.revokeObjectURL(before);
    if (!this.image.isConnected) this.note.replaceWith(this.image);
    this.came = Date.now();
    this.tell();
  }

  // `refusal`: why there is none, as the service answers.
  say(refusal) {
    this.isHidden = refusal.id === "pictures-hidden";
    if (this.image.isConnected) return; // the last picture says more, and its age how much it is worth
    this.note.textContent = notShown(refusal, this.isAdmin);
  }

  // `seconds`: for how long the camera has brought nothing, or 0. Its last picture may be far older than this page.
  silent(seconds) {
    this.silentSince = seconds ? Date.now() - 1000 * seconds : 0;
    this.tell();
  }

  // By the clock of the wall: that of the page may stand while the machine sleeps.
  tell() {
    const age = Date.now() - Math.min(this.came || Date.now(), this.silentSince || Infinity);
    const isOld = this.hasPicture && age > OLD_MS;
    this.element.classList.toggle("old", isOld);
    this.age.hidden = !isOld;
    const text = isOld ? `This picture is ${span(age / 1000)} old` : "";
    if (this.age.textContent !== text) this.age.textContent = text;
  }
}
