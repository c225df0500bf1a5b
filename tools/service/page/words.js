// The state of things in words of those who look: a guard, a nurse.

const STATES = {
  starting: ["is starting", "warn"],
  coming: ["is being added", "warn"],
  leaving: ["is being removed", "warn"],
  waiting: ["waits for the machine", "warn"],
  connecting: ["is being connected", "warn"],
  live: ["live", ""],
  running: ["running", ""],
  stalled: ["no picture", "bad"],
  lost: ["not reachable", "bad"],
  unauthorised: ["refuses the password", "bad"],
  gone: ["has no such stream", "bad"],
  paused: ["rests", "rests"],
  done: ["has ended", "rests"],
  stopped: ["was stopped", "rests"],
  failed: ["does not work", "bad"],
};

// Whether nothing new comes from a camera of this kind of state.
export const isSilent = (kind) => kind === "bad" || kind === "rests";

export function cameraState(camera) {
  const [words, kind] = STATES[camera.state] || [camera.state, "warn"];
  const since = kind === "bad" && camera.since_s !== null ? ` for ${span(camera.since_s)}` : "";
  return { text: words + since, kind, why: kind === "bad" ? camera.why || camera.error || "" : "" };
}

// Why a picture that came was not looked at; reasons of stages of others are told as they are.
const DROPS = {
  queue_full: "because this machine was too slow",
  damaged: "because they came damaged (look at the network and the camera)",
  reader_lost: "because the program that had them died",
  stale: "because this machine was too slow",
  no_slot: "because memory was short",
  quarantined: "because programs died of them",
  error: "because of a mistake, which the log has",
  model_failed: "because the model failed on them",
};

export function dropsInWords(camera) {
  const why = Object.entries(camera.drops_by_reason).sort(([, one], [, other]) => other - one);
  return why.map(([reason, n]) => `${counted(n, "picture")} ${DROPS[reason] || `(${reason.replaceAll("_", " ")})`}`).join("; ");
}

export function verdict(status, running) {
  if (running.length) {
    const where = [...new Set(running.map((one) => one.camera))].join(", ");
    return { text: `${counted(running.length, "incident")} going on: ${where}`, isBad: true };
  }
  const text = state(status);
  return { text, isBad: text.endsWith("without a picture") || text.startsWith("Needs attention") };
}

function state(status) {
  const cameras = Object.values(status.cameras);
  const bad = cameras.filter((camera) => cameraState(camera).kind === "bad").length;
  if (status.phase === "starting") return "Starting…";
  if (status.phase === "stopping") return "Stopping…";
  if (bad) return `${bad} of ${counted(cameras.length, "camera")} without a picture`;
  if (status.health.level === "healthy") return `All is well: ${counted(cameras.length, "camera")}`;
  return status.troubles.length ? `Needs attention: ${counted(status.troubles.length, "trouble")}` : "Needs attention";
}

export function counted(n, noun) {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

export function span(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return whole % 60 && whole < 600 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${Math.round(whole / 60)} min`;
  if (whole < 172800) return `${Math.round(whole / 3600)} h`;
  return `${Math.round(whole / 86400)} days`;
}

export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export const title = (text) => sentence(String(text).replaceAll("_", " "));

export function when(iso) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return String(iso);
  const today = new Date();
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });
  if (at.toDateString() === today.toDateString()) return `today, ${time}`;
  return `${at.toLocaleDateString([], { weekday: "short", day: "numeric", month: "short", year: "numeric" })}, ${time}`;
}

export function lasted(incident) {
  if (incident.phase === "running") return "still going on";
  if (incident.phase === "lost") return "its end was not seen";
  if (incident.phase === "single") return "one moment";
  return `lasted ${span(incident.duration_s)}`;
}

export const LABELS = { acknowledged: "Seen", true_alarm: "Real", false_alarm: "False alarm" };
