// What the service says, for those who look. It speaks to the people who set camgraph up: of settings, packets and processes.

const WORDS = [
  [/^no packets of .* are kept$/, "no picture yet"],
  [/its process died: no sign of life for/g, "the program that reads it did not answer for"],
  [/its process died: /g, "the program that reads it ended: "],
  [/ \([a-z]+_s\)/g, ""],
  [/\bstalled for ([^(;,]*) \(no frame for [^)]*\)/g, "no picture for $1"],
  [/\blost for /g, "not reachable for "],
  [/\bunauthorised for /g, "refuses the password for "],
  [/\bgone for /g, "answers, but sends no picture for "],
  [/\bwithout frames\b/g, "without a picture"],
  [/\bno frame for /g, "no picture for "],
  [/`/g, ""],
];
// What is to be done about it, by those who may.
const FOR_ADMINS = [
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
