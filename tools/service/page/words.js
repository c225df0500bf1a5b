// The state of things in words of those who look: a guard, a nurse.

import { Unreachable } from "./api.js";
import { plain } from "./plain.js";

// The words, the kind, and what may be wrong.
const STATES = {
  starting: ["is starting", "warn"],
  coming: ["is being added", "warn"],
  leaving: ["is being removed", "warn"],
  queued: ["waits for its turn", "rests"],
  waiting: ["waits for the machine", "warn"],
  connecting: ["is being connected", "warn"],
  live: ["live", ""],
  running: ["running", ""],
  stalled: ["no picture", "bad"],
  lost: ["not reachable", "bad"],
  unauthorised: ["refuses the password", "bad"],
  gone: ["answers, but sends no picture", "bad", " (its address may be wrong)"],
  paused: ["rests", "rests"],
  done: ["has ended", "rests"],
  stopped: ["was stopped", "rests"],
  failed: ["does not work", "bad"],
};

// Those of the kind "rests", of one camera and of several.
const REST = { queued: ["waits for its turn", "wait for their turn"], paused: ["rests", "rest"], done: ["has ended", "have ended"], stopped: ["was stopped", "were stopped"] };

// Whether nothing new comes from a camera of this kind of state.
export const isSilent = (kind) => kind === "bad" || kind === "rests";

// `isAdmin`: whether to tell what is to be done about it.
export function cameraState(camera, isAdmin = false) {
  const [words, kind, hint = ""] = STATES[camera.state] || [camera.state, "warn"];
  const since = kind === "bad" && camera.since_s !== null ? ` for ${span(camera.since_s)}` : "";
  const why = plain(kind === "bad" ? camera.why || camera.error || "" : "", isAdmin);
  return { text: words + since + hint, kind, why: why.startsWith(`${words} for`) ? "" : why };
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

// For the header of each view. An incident must not hide that cameras are dead, and these must not hide other troubles.
export function verdict(status, running, silences) {
  const troubles = troublesInWords(status);
  const found = [...incidentsInWords(running, silences), ...troubles, ...restsInWords(status)];
  if (isBetween(status)) found.push(`${title(status.phase)}…`);
  const isBad = silences.isUnread || running.length + troubles.length > 0;
  const cameras = Object.keys(status.cameras).length;
  return { text: found.join(" · ") || (cameras ? `All is well: ${counted(cameras, "camera")}` : "There are no cameras"), isBad };
}

const isBetween = ({ phase }) => phase === "starting" || phase === "stopping";

function incidentsInWords(running, silences) {
  if (silences.isUnread) return [`Nobody knows what happens now: the incidents cannot be read${silences.unreadSince()}`];
  const isUnknown = (one) => silences.has(one.camera);
  const [known, unknown] = [running.filter((one) => !isUnknown(one)), running.filter(isUnknown)];
  const cameras = (incidents) => [...new Set(incidents.map((one) => one.camera))];
  const dark = cameras(unknown).map((camera) => `${camera}${silences.since(camera)}`);
  return [
    known.length ? `${counted(known.length, "incident")} going on: ${cameras(known).join(", ")}` : "",
    unknown.length ? `${counted(unknown.length, "incident")} not known any more: no picture from ${dark.join(", ")}` : "",
  ].filter(Boolean);
}

// What was let rest is easily forgotten.
function restsInWords(status) {
  if (isBetween(status)) return [];
  const states = Object.values(status.cameras).map((camera) => camera.state);
  const found = Object.entries(REST).map(([state, words]) => [states.filter((one) => one === state).length, words]).filter(([n]) => n);
  const told = found.map(([n, [one, many]]) => `${n} of ${counted(states.length, "camera")} ${n === 1 ? one : many}`);
  return told.length ? [`${told.join(" and ")}: nothing there is noticed`] : [];
}

function troublesInWords(status) {
  if (isBetween(status)) return [];
  const cameras = Object.values(status.cameras);
  const bad = cameras.filter((camera) => cameraState(camera).kind === "bad").length;
  const lost = bad ? [`${bad} of ${counted(cameras.length, "camera")} without a picture`] : [];
  if (status.troubles.length) return [...lost, `${bad ? "" : "Needs attention: "}${counted(status.troubles.length, "trouble")}`];
  return bad || status.health.level === "healthy" ? lost : ["Needs attention"];
}

// Why nothing can be shown, for those who look: a sentence. What the service says of its run is for those who run it.
export function refusal(problem) {
  if (problem instanceof Unreachable) return "camgraph does not answer.";
  return problem.status >= 500 ? "camgraph does not say how the cameras are." : sentence(`${problem.message}.`);
}

export function counted(n, noun) {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

// As mails say it (`span` of stages/sinks/delivery/event_words.py).
export function length(seconds) {
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const [first, second] = hours ? [`${hours} h`, minutes && `${minutes} min`] : minutes ? [`${minutes} min`, rest && `${rest} s`] : [`${rest} s`];
  return second ? `${first} ${second}` : first;
}

// For how long something has been so.
export function span(seconds) {
  return seconds < 172800 ? length(seconds) : `${Math.round(seconds / 86400)} days`;
}

export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export const title = (text) => sentence(String(text).replaceAll("_", " "));

// As short as it can be: the hour, and before today the day.
export function clock(at) {
  const day = at.toDateString() === new Date().toDateString() ? {} : { weekday: "short", day: "numeric", month: "short" };
  return at.toLocaleString([], { ...day, hour: "2-digit", minute: "2-digit" });
}

export function when(iso) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return String(iso);
  const today = new Date();
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });
  if (at.toDateString() === today.toDateString()) return `today, ${time}`;
  return `${at.toLocaleDateString([], { weekday: "short", day: "numeric", month: "short", year: "numeric" })}, ${time}`;
}

// Changes with what is known of its camera.
export function lasted(incident, silences) {
  if (incident.phase === "running" && silences.isUnread) return `not known${silences.unreadSince()}: the incidents cannot be read`;
  if (incident.phase === "running" && silences.has(incident.camera)) {
    return `not known${silences.since(incident.camera)}: no picture from this camera`;
  }
  if (incident.phase === "running") return "still going on";
  if (incident.phase === "lost") return "its end was not seen";
  if (incident.phase === "single") return "one moment";
  return `${incident.unseen ? "seen for" : "lasted"} ${length(incident.duration_s)}`;
}

export const LABELS = { acknowledged: "Seen", true_alarm: "Real", false_alarm: "False alarm" };
