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

export function cameraState(camera) {
  const [words, kind] = STATES[camera.state] || [camera.state, "warn"];
  const since = kind === "bad" && camera.since_s !== null ? ` for ${span(camera.since_s)}` : "";
  return { text: words + since, kind, why: kind === "bad" ? camera.why || camera.error || "" : "" };
}

export function verdict(status, running) {
  if (running.length) {
    const where = [...new Set(running.map((one) => one.camera))].join(", ");
    return `${counted(running.length, "incident")} going on: ${where}`;
  }
  return state(status);
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

export function title(text) {
  const words = String(text).replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

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
