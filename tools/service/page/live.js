// A camera as it is now: its video as it comes, in a <video>, with people and zones over it. If the browser cannot play it,
// pictures in an <img>, a few a second. Until these are there, and if none can be had, the newest still.

import { relative, Unreachable } from "./api.js";
import { make, say } from "./dom.js";
import { draw, People } from "./people.js";
import { plain } from "./plain.js";
import { sightOf } from "./sight.js";
import { Still } from "./stills.js";

const RETRY_MS = 3000;
const ANEW_MS = 300; // a file that is over begins again, a camera that was away sends again
const REFUSED_MS = 60000; // what cannot be shown now will hardly be shown in a moment
const LEAST_S = 0.3; // behind the newest picture, so that playing does not stop at each late packet
const MOST_S = 2.5;
const KEPT_S = 20;
const LEFT = Symbol("nobody looks any more");
const ENDED = Symbol("the stream is over");
const DEAD_MS = 30000; // after so long without one, the connection counts as dead
const BEGUN_MS = 30000; // the service waits 20 s for a keyframe
const VIDEO_OFF = "video-off"; // the id of that answer
const HIDDEN = "Live video is switched off to protect faces. You see the people as skeletons.";

// iPhones have the managed one alone. It wants no playing on other devices beside it. What comes is appended at once, whether or
// not it asks to be given more: live video is never far ahead.
const Source = window.ManagedMediaSource ?? window.MediaSource;

// `judged` is told how the camera is, as `sightOf` judges it. `isAdmin`: as for `cameraState`.
export class Live {
  constructor(camera, judged, isAdmin = false) {
    this.camera = camera;
    this.judged = judged;
    this.isAdmin = isAdmin;
    this.isGone = false;
    this.tries = 0;
    this.problem = null; // why the last try has shown nothing
    this.still = new Still(camera, isAdmin);
    this.shown = this.still.element;
    this.image = make("img", { class: "moving", alt: `${camera}, live` });
    this.video = make("video", { class: "moving", muted: true, playsinline: true, "aria-label": `${camera}, live` });
    this.video.muted = true;
    this.video.disableRemotePlayback = true;
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

  // Whether the run has this camera: if not, nothing is asked for until it has.
  exists(does) {
    if (does === !this.isGone) return;
    this.isGone = !does;
    if (!does) {
      this.rest();
      this.show(this.still.element);
      return;
    }
    this.tries = 0;
    if (!document.hidden) this.begin();
  }

  begin() {
    if (this.isClosed || this.isGone || this.people) return;
    this.people = new People(this.camera, () => this.redraw());
    this.play();
  }

  async play() {
    clearTimeout(this.timer);
    let wait = Math.min(REFUSED_MS, RETRY_MS * 2 ** this.tries++);
    let problem = await this.watch(new Film(this.camera, this.video, (...size) => this.onPlaying(this.video, ...size)));
    if (problem instanceof NotShown && problem.id !== VIDEO_OFF) {
      const pictures = new Pictures(this.camera, this.image, (...size) => this.onPlaying(this.image, ...size));
      pictures.words = `Live, a few pictures a second: ${problem.instead}`;
      problem = await this.watch(pictures);
    }
    if (problem === LEFT) return;
    if (problem === ENDED) wait = ANEW_MS;
    if (problem instanceof NotShown) wait = REFUSED_MS;
    if (problem instanceof Unreachable) this.people?.again(); // its connection is as dead, and does not tell
    this.problem = problem === ENDED || problem?.name === "AbortError" ? null : problem;
    this.show(this.still.element);
    this.judge();
    this.timer = setTimeout(() => this.play(), wait);
  }

  // Until it ends: why, or null; ENDED if it has shown something and is over, LEFT if nobody looks any more.
  async watch(film) {
    let problem = null;
    this.film = film;
    await film.play().catch((error) => { problem = error; });
    if (this.film !== film) return LEFT;
    if (film.isDead) problem = new Unreachable("camgraph, or the camera, sends nothing");
    film.close();
    this.film = null;
    return problem ?? (film.isPlaying ? ENDED : null);
  }

  show(element) {
    if (this.shown === element) return;
    this.picture.replaceChild(element, this.shown);
    this.shown = element;
    if (!this.isMoving) this.picture.style.aspectRatio = this.picture.style.maxWidth = "";
  }

  get isMoving() {
    return this.shown !== this.still.element;
  }

  // The first picture of the video, or of the row of pictures, is there.
  onPlaying(element, width, height) {
    this.tries = 0;
    this.show(element);
    this.shape(width, height);
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
    if (silent > DEAD_MS) {
      this.film.isDead = true;
      this.film.stopping.abort();
      return;
    }
    this.judge();
  }

  // `now`: the camera in the status.
  update(now) {
    this.now = now;
    this.told = performance.now();
    this.judge();
  }

  judge() {
    if (!this.now) return;
    const at = performance.now();
    const plays = Boolean(this.film?.isPlaying);
    const sight = sightOf(this.now, at - this.told, plays ? at - this.film.came : null, this.isAdmin);
    say(this.note, plays ? sight.caption || this.film.words : this.whyStill());
    this.picture.classList.toggle("stale", sight.isOld);
    this.judged(sight);
  }

  // Why there is a still in place of the video. Settings are named to those alone who may change them.
  whyStill() {
    if (!this.problem) return "";
    const { id, message } = this.problem;
    if (id !== VIDEO_OFF || this.isAdmin) return `Stills: ${plain(message, this.isAdmin)}`;
    return this.still.isHidden ? HIDDEN : "Live video is switched off.";
  }

  // Over the video, and over pictures, those of the picture that is shown; over a still the newest ones, if there is no picture at all.
  redraw() {
    if (!this.people) return;
    const isShown = this.shows.checked;
    const place = this.film?.place();
    const isBlack = !this.isMoving && !this.still.hasPicture;
    // A still is shown in the shape of the camera's pictures, so that zones lie where they belong.
    if (!this.isMoving && this.people.shapes) this.shape(...this.people.shapes.size);
    this.picture.classList.toggle("black", isBlack && Boolean(this.people.shapes));
    const frame = this.isMoving && place ? this.people.at(...place) : isBlack ? this.people.newest() : null;
    draw(this.canvas, isShown || isBlack ? this.people.shapes : null, frame);
  }
}

// `instead`: why pictures are shown in place of the video, if they can be.
class NotShown extends Error {
  constructor(why, instead = why) {
    super(why);
    this.instead = instead;
  }
}

// The pieces of one answer, handed to the video. Over when the camera ends, or begins anew.
class Film {
  constructor(camera, video, playing) {
    this.path = `/api/cameras/${encodeURIComponent(camera)}/live.mp4`;
    this.video = video;
    this.playing = playing;
    this.words = "Live";
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
    if (!Source) throw new NotShown("this browser cannot show live video");
    const answer = await asked(this.path, this.stopping);
    const type = answer.headers.get("Content-Type");
    if (!Source.isTypeSupported(type)) throw new NotShown(`this browser cannot show ${inWords(type)}`);
    this.epoch = Number(answer.headers.get("X-Camgraph-Epoch"));
    this.start = Number(answer.headers.get("X-Camgraph-Start"));
    const source = new Source();
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
      this.playing(this.video.videoWidth, this.video.videoHeight);
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

// The pictures of one answer (`multipart/x-mixed-replace`), each shown as soon as it is whole. Nothing is drawn on them:
// that is done here, as over a video.
class Pictures {
  constructor(camera, image, playing) {
    this.path = `/api/cameras/${encodeURIComponent(camera)}/mjpeg?draw=no`;
    this.image = image;
    this.playing = playing;
    this.stopping = new AbortController();
  }

  close() {
    this.stopping.abort();
    URL.revokeObjectURL(this.url);
    this.image.removeAttribute("src");
  }

  async play() {
    const answer = await asked(this.path, this.stopping);
    const reader = answer.body.getReader();
    let data = new Uint8Array();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      data = joined(data, value);
      for (let part = partOf(data); part; part = partOf(data)) {
        data = data.slice(part.end);
        await this.show(part);
      }
    }
  }

  async show(part) {
    const before = this.url;
    this.url = URL.createObjectURL(new Blob([part.body], { type: "image/jpeg" }));
    this.image.src = this.url;
    await this.image.decode().catch(() => {});
    URL.revokeObjectURL(before);
    if (this.stopping.signal.aborted) return;
    this.came = performance.now();
    this.at = [Number(part.head.get("x-camgraph-epoch")), Number(part.head.get("x-camgraph-at"))];
    if (!this.isPlaying) this.playing(this.image.naturalWidth, this.image.naturalHeight);
    this.isPlaying = true;
  }

  // [epoch, time of the stream] of the picture that is shown.
  place() {
    return this.isPlaying ? this.at : null;
  }

  keepUp() {}
}

// An answer that goes on. What cannot be shown now will hardly be shown in a moment.
async function asked(path, stopping) {
  const bound = setTimeout(() => stopping.abort(new Unreachable("camgraph does not answer")), BEGUN_MS);
  const answer = await fetch(relative(path), { cache: "no-store", signal: stopping.signal }).finally(() => clearTimeout(bound));
  if (answer.ok) return answer;
  const { error = "the video does not come", id = "" } = await answer.json().catch(() => ({}));
  const refused = answer.status === 400 ? new NotShown(error, "browsers cannot play what this camera sends") : new Error(error);
  throw Object.assign(refused, { id });
}

function joined(one, other) {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

// { head, body, end } of the first part; null if it is not whole yet. Each begins behind its boundary or with it.
function partOf(data) {
  const empty = endOfHead(data);
  if (!empty) return null;
  const lines = new TextDecoder().decode(data.subarray(0, empty)).split("\r\n");
  const head = new Map(lines.filter((line) => line.includes(": ")).map((line) => {
    const [name, value] = line.split(": ");
    return [name.toLowerCase(), value];
  }));
  const end = empty + Number(head.get("content-length"));
  return data.length < end ? null : { head, body: data.subarray(empty, end), end };
}

function endOfHead(data) {
  for (let n = 3; n < data.length; n++) {
    if (data[n] === 10 && data[n - 1] === 13 && data[n - 2] === 10 && data[n - 3] === 13) return n + 1;
  }
  return 0;
}

const CODECS = { hvc1: "H.265 video", avc1: "H.264 video", av01: "AV1 video", vp09: "VP9 video" };

function inWords(type) {
  const codec = (type.split('"')[1] || type).split(".")[0];
  return `${CODECS[codec] || "this video"}; another one may${codec === "hvc1" ? ", such as Edge or Safari" : ""}`;
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
