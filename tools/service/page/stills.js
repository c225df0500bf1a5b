// The newest picture of a camera in an <img>: asked for again and again while it can be seen, one request at a time.

const EVERY_MS = 2000;
const RETRY_MS = 10000;

export class Still {
  constructor(camera) {
    this.camera = camera;
    this.image = document.createElement("img");
    this.image.className = "still";
    this.image.alt = `The newest picture of ${camera}`;
    this.note = document.createElement("div");
    this.note.className = "still none";
    this.note.textContent = "no picture yet";
    this.element = document.createElement("div");
    this.element.append(this.note);
    this.tag = "";
    this.isSeen = false;
    this.timer = 0;
    this.watcher = new IntersectionObserver(([entry]) => {
      this.isSeen = entry.isIntersecting;
      if (this.isSeen) this.next(0);
    });
    this.watcher.observe(this.element);
  }

  close() {
    this.watcher.disconnect();
    clearTimeout(this.timer);
    this.isClosed = true;
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
      const answer = await fetch(path, { headers, cache: "no-store" });
      if (answer.ok) {
        this.tag = answer.headers.get("ETag") || "";
        this.show(await answer.blob());
      } else if (answer.status !== 304) {
        this.say((await answer.json().catch(() => ({}))).error || "no picture");
        pause = RETRY_MS;
      }
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
    const before = this.image.src;
    this.image.src = URL.createObjectURL(blob);
    if (before) URL.revokeObjectURL(before);
    if (!this.image.isConnected) this.element.replaceChildren(this.image);
  }

  say(why) {
    if (this.image.isConnected) return; // the last picture says more, and its caption how things stand
    this.note.textContent = why;
  }
}
