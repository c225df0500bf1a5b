// How a camera is, while its video is shown: one judgement of what the service says and of when the last packet came. The
// state beside the picture, the caption below it and whether it is dimmed all follow from it.

import { cameraState, isSilent, span } from "./words.js";

const STILL_MS = 3000; // after so long without a packet, the picture is no longer that of now
const LATE_MS = 5000; // what the service says may be so much older than the packets
const UNSEEN = {
  text: "a picture comes, but is not looked at",
  caption: "Live, but not looked at: nothing that happens here is noticed.",
  why: "",
  isOld: false,
};

// `toldMs`: since the service said it. `cameMs`: since the last packet; null while no video plays.
export function sightOf(camera, toldMs, cameMs, isAdmin = false) {
  const sinceMs = camera.since_s === null ? 0 : 1000 * camera.since_s + toldMs;
  const told = cameraState({ ...camera, since_s: camera.since_s === null ? null : sinceMs / 1000 }, isAdmin);
  if (cameMs === null) return { ...told, isOld: false, caption: "" };
  const old = { isOld: true, caption: `This picture is ${span(cameMs / 1000)} old: nothing comes from the camera.` };
  const comes = cameMs <= STILL_MS;
  if (isSilent(told.kind)) {
    // Packets from before the loss still count as new for a moment.
    const isBack = comes && cameMs + LATE_MS < sinceMs;
    return isBack ? { ...told, ...UNSEEN } : { ...told, ...old };
  }
  if (!comes) return { text: `no picture for ${span(cameMs / 1000)}`, kind: "bad", why: "", ...old };
  return { ...told, isOld: false, caption: "" };
}
