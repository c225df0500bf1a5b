// What the service says, for those who look. It speaks to the people who set camgraph up: of settings, packets and processes.

const WORDS = [
  [/^no packets of .* are kept$/, "no picture yet"],
  [/its process died: no sign of life for/g, "the program that reads it did not answer for"],
  [/its process died: /g, "the program that reads it ended: "],
  [/ \([a-z]+_(s|mb)\)/g, ""],
  [/\bno keyframe has come\b/g, "no whole picture has come"],
  [/\bstalled for ([^(;,]*) \(no frame for [^)]*\)/g, "no picture for $1"],
  [/\blost for /g, "not reachable for "],
  [/\bunauthorised for /g, "refuses the password for "],
  [/\bgone for /g, "answers, but sends no picture for "],
  [/\bwithout frames\b/g, "without a picture"],
  [/\bno frame for /g, "no picture for "],
  [/`/g, ""],
];
// Ways out that lie in settings, of camgraph or of the camera.
const WAYS_OUT = [
  /if that is right, write that address in `url`, or `redirects: follow`/,
  /write the address of the stream itself in `url` \(the camera's manual has it\), and user and password if the page asks for them/,
  /write `[^`]*` for this camera/,
  /choose (MJPEG|JPEG, or a stream,) in the camera/,
  /choose another codec in the camera, such as H\.264 or H\.265/,
  /choose one in the camera: expected [^.]*\. The user and password of `url` were not sent/,
  /try another stream, codec or quality of the camera/,
  /end other viewers of the camera, or choose a smaller stream/,
];
// What is to be done about it, by those who may.
const FOR_ADMINS = [
  [new RegExp(`[:;] (${WAYS_OUT.map((one) => one.source).join("|")})`, "g"), ": tell the person who set camgraph up"],
  [/; for shorter waits, lower the interval of keyframes \([^)]*\) in the camera/g, ""],
  [/ of `url` \([^)]*\)/g, ""],
  [/: correct (it|them) there( \(in a password [^)]*\), or the rights of this user in the camera)?/g, ": tell the person who set camgraph up"],
  [/: if it may, raise `hang_s` in the graph file/g, ""],
  [/: give it `realtime: true`/g, ""],
];
// What is said instead of an answer about settings, by its id.
const NOT_SHOWN = {
  "pictures-hidden": "Faces are hidden here, so there is no live picture. Pictures of incidents are under Incidents.",
  "pictures-not-kept": "No pictures are kept here.",
};

export function plain(text, isAdmin) {
  return [...(isAdmin ? [] : FOR_ADMINS), ...WORDS].reduce((told, [what, words]) => told.replace(what, words), text);
}

// Why no picture is shown: `error` and `id` of an answer.
export function notShown({ error = "no picture", id }, isAdmin) {
  return (!isAdmin && NOT_SHOWN[id]) || plain(error, isAdmin);
}
