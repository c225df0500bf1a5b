// What the service says, for those who look. It speaks to the people who set camgraph up: of settings, packets and processes.

const WORDS = [
  [/^no packets of .* are kept$/, "no picture yet"],
  [/its process died: no sign of life for/g, "the program that reads it did not answer for"],
  [/its process died: /g, "the program that reads it ended: "],
  [/ \([a-z]+_s\)/g, ""],
  [/\bstalled for ([^(;,]*) \(no frame for [^)]*\)/g, "no picture for $1"],
  [/\blost for /g, "not reachable for "],
  [/\bunauthorised for /g, "refuses the password for "],
  [/\bgone for /g, "has no such stream for "],
  [/\bwithout frames\b/g, "without a picture"],
  [/\bno frame for /g, "no picture for "],
  [/`/g, ""],
];
// What is to be done about it, by those who may.
const FOR_ADMINS = [
  [/ of `url` \([^)]*\)/g, ""],
  [/: correct (it|them) there( \(in a password [^)]*\), or the rights of this user in the camera)?/g, ": tell the person who set camgraph up"],
  [/: if it may, raise `hang_s` in the graph file/g, ""],
];

export function plain(text, isAdmin) {
  return [...(isAdmin ? [] : FOR_ADMINS), ...WORDS].reduce((told, [what, words]) => told.replace(what, words), text);
}
