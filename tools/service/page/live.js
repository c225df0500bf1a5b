// A camera as it is now: its video as it comes, in a <video>, with people and zones over it. Until the video is there, and
// if it cannot be had, the newest still.

import { make } from "./dom.js";
import { draw, People } from "./people.js";
import { Still } from "./stills.js";
import { span } from "./words.js";

const RETRY_MS = 3000;
const REFUSED_MS = 60000; // what cannot be shown now will hardly be shown in a moment
const LEAST_S = 0.3; // behind the newest picture, so that playing does not stop at each late packet
const MOST_S = 2.5;
const KEPT_S = 20;
const STILL_MS = 3000; // after so long without a packet, the picture is no longer that of now

export class Live {
  constructor(camera) {
    this.camera = camera;
    this.tries = 0;
    this.still = new Still(camera);
    this.video = make("video", { muted: true, playsinline: true, "aria-label": `${camera}, live` });
    this.video.muted = true;
    this.canvas = make("canvas", { class: "over", "aria-hidden": "true" });
    this.picture = make("div", { class: "picture" }, this.still.element, this.canvas);
    this.note = make("p", { class: "quiet" });
    const shows = make("input", { type: "checkbox", id: "draw", checked: localStorage.getItem("draw") !== "no" });
    shows.addEventListener("change", () => {
      localStorage.setItem("draw", shows.checked ? "yes" : "no");
      this.redraw();
    });
    this.shows = shows;
    this.element = make("div", { class: "live" }, this.picture,
      make("div", { class: "bar" }, make("label", {}, shows, " Show people and zones"), this.note));
    this.onVisibility = () => (document.hidden ? this.rest() : this.begin());
    document.addEventListener("visibilitychange", this.onVisibility);
    if (!document.hidden) this.begin();
  }

  close() {
    this.isClosed = true;
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.rest();
    this.still.close();
  }

  // Nobody looks: nothing is asked for any more.
  rest() {
    clearTimeout(this.timer);
    cancelAnimationFrame(this.turn);
    this.turn = 0;
    this.film?.close();
    this.film = null;
    this.people?.close();
    this.people = null;
  }

  begin() {
    if (this.isClosed || this.people) return;
    this.people = new People(this.camera, () => this.redraw());
    this.play();
  }

  async play() {
    clearTimeout(this.timer);
    const film = new Film(this.camera, this.video, () => this.onPlaying());
    this.film = film;
    let why = "";
    let wait = Math.min(REFUSED_MS, RETRY_MS * 2 ** this.tries++);
    try {
      await film.play();
    } catch (problem) {
      why = problem.name === "AbortError" ? "" : problem.message;
      if (problem instanceof NotShown) wait = REFUSED_MS;
    }
    if (this.film !== film) return;
    film.close();
    this.film = null;
    this.note.textContent = why ? `Stills: ${why}` : "";
    this.picture.classList.remove("stale");
    if (!this.still.element.isConnected) {
      this.picture.replaceChild(this.still.element, this.video);
      this.picture.style.aspectRatio = this.picture.style.maxWidth = "";
    }
    this.timer = setTimeout(() => this.play(), wait);
  }

  // The first picture of the video is there.
  onPlaying() {
    this.tries = 0;
    if (this.still.element.isConnected) this.picture.replaceChild(this.video, this.still.element);
    this.shape(this.video.videoWidth, this.video.videoHeight);
    if (!this.turn) this.onFrame();
  }

  // An upright picture is not higher than the window.
  shape(width, height) {
    this.picture.style.aspectRatio = `${width} / ${height}`;
    this.picture.style.maxWidth = `calc(80vh * ${width / height})`;
  }

  onFrame() {
    this.turn = requestAnimationFrame(() => this.onFrame());
    this.film?.keepUp(this.people);
    this.tell();
    this.redraw();
  }

  // A picture that stands still must not look like one of now.
  tell() {
    if (!this.film?.isPlaying) return;
    const silent = performance.now() - this.film.came;
    const stands = silent > STILL_MS;
    const text = stands ? `This picture is ${span(silent / 1000)} old: nothing comes from the camera.` : "Live";
    if (this.note.textContent !== text) this.note.textContent = text;
    this.picture.classList.toggle("stale", stands);
  }

  // Over the video those of the picture that is shown; over a still the newest ones, if there is no picture at all.
  redraw() {
    if (!this.people) return;
    const isShown = this.shows.checked;
    const place = this.film?.place();
    const isBlack = !this.video.isConnected && !this.still.hasPicture;
    // A still is shown in the shape of the camera's pictures, so that zones lie where they belong.
    if (!this.video.isConnected && this.people.shapes) this.shape(...this.people.shapes.size);
    this.picture.classList.toggle("black", isBlack && Boolean(this.people.shapes));
    const frame = this.video.isConnected && place ? this.people.at(...place) : isBlack ? this.people.newest() : null;
    draw(this.canvas, isShown || isBlack ? this.people.shapes : null, frame);
  }
}

class NotShown extends Error {}

// The pieces of one answer, handed to the video. Over when the camera ends, or begins anew.
class Film {
  constructor(camera, video, playing) {
    this.path = `/api/cameras/${encodeURIComponent(camera)}/live.mp4`;
    this.video = video;
    this.playing = playing;
    this.stopping = new AbortController();
  }

  close() {
    this.stopping.abort();
    if (this.url) {
      this.video.removeAttribute("src");
      this.video.load();
      URL.revokeObjectURL(this.url);
      this.url = null;
    }
  }

  async play() {
    if (!window.MediaSource) throw new NotShown("this browser cannot show live video");
    const answer = await fetch(this.path, { cache: "no-store", signal: this.stopping.signal });
    if (!answer.ok) {
      const why = (await answer.json().catch(() => ({}))).error || "the video does not come";
      throw answer.status === 400 ? new NotShown(why) : new Error(why);
    }
    const type = answer.headers.get("Content-Type");
    if (!MediaSource.isTypeSupported(type)) throw new NotShown(`this browser cannot show ${inWords(type)}`);
    this.epoch = Number(answer.headers.get("X-Camgraph-Epoch"));
    this.start = Number(answer.headers.get("X-Camgraph-Start"));
    const source = new MediaSource();
    const opened = once(source, "sourceopen");
    this.url = URL.createObjectURL(source);
    this.video.src = this.url;
    await opened;
    this.buffer = source.addSourceBuffer(type);
    const reader = answer.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      this.came = performance.now();
      await this.append(value);
    }
  }

  async append(piece) {
    const added = once(this.buffer, "updateend");
    this.buffer.appendBuffer(piece);
    await added;
    if (this.video.error) throw new Error("the video is damaged");
    const ranges = this.buffer.buffered;
    if (!ranges.length) return;
    if (!this.isPlaying && this.video.readyState >= 2) {
      this.isPlaying = true;
      this.video.currentTime = Math.max(ranges.start(0), ranges.end(ranges.length - 1) - LEAST_S);
      this.video.play().catch(() => {});
      this.playing();
    }
    if (this.video.currentTime - ranges.start(0) > 2 * KEPT_S) {
      const removed = once(this.buffer, "updateend");
      this.buffer.remove(ranges.start(0), this.video.currentTime - KEPT_S);
      await removed;
    }
  }

  // [epoch, time of the stream] of the picture that is shown.
  place() {
    return this.isPlaying ? [this.epoch, this.video.currentTime + this.start] : null;
  }

  // Near to now, but not nearer than what is known of the people, so that they are drawn where they are.
  keepUp(people) {
    const ranges = this.isPlaying && this.buffer.buffered;
    if (!ranges || !ranges.length) return;
    const end = ranges.end(ranges.length - 1);
    const known = people?.newest();
    const late = known && known.epoch === this.epoch && known.at !== null ? end + this.start - known.at + 0.1 : 0;
    const wanted = Math.min(MOST_S, Math.max(LEAST_S, late));
    const behind = end - this.video.currentTime;
    if (behind > wanted + 1.5 || this.video.currentTime < ranges.start(ranges.length - 1)) {
      this.video.currentTime = Math.max(ranges.start(ranges.length - 1), end - wanted);
    }
    this.video.playbackRate = behind > wanted + 0.25 ? 1.1 : behind < wanted - 0.25 ? 0.9 : 1;
    if (this.video.paused) this.video.play().catch(() => {});
  }
}

function inWords(type) {
  const codec = type.split('"')[1] || type;
  return codec.startsWith("hvc1") ? "H.265 video; another one may, such as Edge or Safari" : `video of the kind ${codec}`;
}

// Both listeners go with the first event: a camera that is open for days would gather one for each picture.
function once(target, name) {
  return new Promise((done, failed) => {
    const heard = new AbortController();
    const listen = (event, act) => target.addEventListener(event, () => {
      heard.abort();
      act();
    }, { signal: heard.signal });
    listen(name, done);
    listen("error", () => failed(new Error("the video cannot be shown")));
  });
}
