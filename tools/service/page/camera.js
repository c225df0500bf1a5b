// One camera: its video, how it is, and what happened there.

import { post } from "./api.js";
import { make, say } from "./dom.js";
import { emptyList, IncidentRows } from "./incidents.js";
import { Live } from "./live.js";
import { Plots } from "./plots.js";
import { ShapeEditor } from "./shapes.js";
import { cameraState, counted, dropsInWords, isSilent } from "./words.js";

export function cameraView(state, name) {
  const isAdmin = state.me.role === "admin";
  const live = new Live(name, judged, isAdmin);
  const how = make("p", { class: "state" });
  const why = make("p", { class: "quiet" });
  const facts = make("p", { class: "quiet" });
  const message = make("p", { class: "error", role: "alert" });
  const button = make("button", { hidden: true, onclick: change });
  const drawing = make("button", { hidden: true, text: "Draw zones and lines", onclick: edit });
  const rows = new IncidentRows(state, emptyList(name));
  const plots = new Plots(name);
  const beside = make("div", { class: "facts" }, how, why, facts, make("div", { class: "bar" }, button, drawing), message);
  const gone = make("p", { class: "empty", hidden: true, text: `There is no camera ${name} any more.` });
  const all = make("div", {},
    make("div", { class: "split" },
      make("div", {}, live.element),
      beside),
    make("h2", { text: "What happened here" }), rows.element,
    make("h2", { text: "How well it worked in the last hour" }), plots.element);
  const element = make("section", {},
    make("p", {}, make("a", { class: "way", href: "#/", text: "All cameras" })),
    make("h1", { text: name }), gone, all);
  let editor = null;

  function judged(sight) {
    say(how, sight.text);
    how.className = `state ${sight.kind}`;
    say(why, sight.why);
  }

  function edit() {
    drawing.hidden = true;
    editor = new ShapeEditor(name, live, () => {
      editor = null;
      drawing.hidden = false;
      drawing.focus();
    });
    beside.append(editor.element);
    editor.element.scrollIntoView({ block: "nearest" });
    editor.board.focus({ preventScroll: true });
  }

  async function change() {
    const rests = state.status.cameras[name]?.state === "paused";
    if (!rests && !confirm(`Let ${name} rest? Nothing that happens there is noticed until it goes on.`)) return;
    try {
      await post(`/api/cameras/${encodeURIComponent(name)}/${rests ? "resume" : "pause"}`);
      message.textContent = "";
    } catch (problem) {
      message.textContent = problem.message;
    }
  }

  function update() {
    const camera = state.status.cameras[name];
    // It may come back under this name: nothing of the view is given up.
    gone.hidden = Boolean(camera);
    all.hidden = !camera;
    live.exists(Boolean(camera));
    if (!camera) return;
    live.update(camera);
    live.still.silent(isSilent(cameraState(camera).kind) ? camera.through_s : 0);
    const away = camera.losses ? `away ${counted(camera.losses, "time")}` : "never away";
    const missed = camera.drops ? `Not looked at: ${dropsInWords(camera)}.` : "";
    say(facts, `${camera.fps.toFixed(1)} pictures a second, ${away}. ${missed}`);
    plots.update();
    button.hidden = !["operator", "admin"].includes(state.me.role);
    drawing.hidden = !isAdmin || editor !== null;
    button.textContent = camera.state === "paused" ? "Let it go on" : "Let it rest";
    rows.update();
  }

  function close() {
    editor?.close();
    live.close();
  }

  // Escape leaves the editor first, and asks if something was drawn.
  function escape() {
    if (!editor) return false;
    editor.leave();
    return true;
  }

  // While nobody may look, the drawing alone is kept; the next update goes on.
  const rest = () => live.exists(false);

  const keeps = () => (editor?.isChanged ? "The drawing is not saved. Leave it all the same?" : "");
  return { element, update, close, escape, rest, keeps, hasStreams: true };
}
