// Asks the service. Every answer that is an error becomes an exception with words for people.

const WITHIN_MS = 10000;
const CHANGED_WITHIN_MS = 60000; // the run may take up to 40 s for a change

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class Unreachable extends Error {}

// An address of the service as the page reaches it: also below a path of a proxy, such as https://host/cameras/.
export const relative = (path) => path?.replace(/^\//, "./");

// What `take` makes of an answer. A connection on which nothing comes counts as no answer: the bound holds until `take` has
// read it all. `AbortSignal.any` would do the same, but not in browsers of 2023.
export async function fetched(path, { signal, within = WITHIN_MS, ...options }, take) {
  const bound = new AbortController();
  const timer = setTimeout(() => bound.abort(), within);
  const leave = () => bound.abort();
  signal?.addEventListener("abort", leave);
  try {
    return await take(await fetch(relative(path), { cache: "no-store", ...options, signal: bound.signal }));
  } catch (error) {
    if (signal?.aborted || !(error instanceof TypeError || error.name === "AbortError")) throw error;
    throw new Unreachable("camgraph does not answer");
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", leave);
  }
}

const ask = (path, options) => fetched(path, options, async (answer) => {
  const body = await answer.json().catch((error) => {
    if (error instanceof SyntaxError) return {};
    throw error;
  });
  if (!answer.ok) throw new Refused(answer.status, body.error || `the service answers ${answer.status}`);
  return body;
});

export const get = (path, signal) => ask(path, { signal });

export const post = (path, body = {}) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), within: CHANGED_WITHIN_MS });
