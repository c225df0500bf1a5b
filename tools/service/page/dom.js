// Makes elements. Texts of others go in as text alone, so that no name of a camera is ever taken for markup.

export function make(tag, settings = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "text") element.textContent = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function fill(place, ...children) {
  place.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}

const keys = new WeakMap();

// Fills a place anew only if `key`, of which `create` makes the children, is another one: what is in use there stays.
export function refill(place, key, create) {
  if (keys.get(place) === key) return;
  keys.set(place, key);
  fill(place, ...create());
}

// Sets a text only if it is another one, and in the same node: a selection in it stays.
export function say(element, text) {
  if (element.textContent === text) return;
  if (element.childNodes.length === 1 && element.firstChild.nodeType === Node.TEXT_NODE) element.firstChild.data = text;
  else element.textContent = text;
}

// The elements of a list that changes. `create` makes one: { element, update(value) }. What stays is not touched.
export class Listing {
  constructor(place, create) {
    this.place = place;
    this.create = create;
    this.known = new Map();
  }

  // `entries`: [key, value], in their order.
  update(entries) {
    const keys = new Set(entries.map(([key]) => key));
    for (const [key, one] of this.known) {
      if (keys.has(key)) continue;
      one.element.remove();
      this.known.delete(key);
    }
    entries.forEach(([key, value], n) => {
      if (!this.known.has(key)) this.known.set(key, this.create(key));
      const one = this.known.get(key);
      one.update(value);
      if (this.place.children[n] !== one.element) this.place.insertBefore(one.element, this.place.children[n] || null);
    });
  }
}
