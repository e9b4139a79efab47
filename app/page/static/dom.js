// Elements from plain values. Text is always a text node: nothing that was stored or typed is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element; properties beginning with "on" are listeners, children are nodes, text or nothing. */
export function h(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
}

/** Make an element of a drawing. */
export function svg(name, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, name), properties, children);
}

/** Replace all that an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/** Fill, but leave what has the focus in place when the same thing is there again. */
export function refill(element, ...children) {
  const held = document.activeElement;
  const key = held && element.contains(held) ? held.dataset.key : undefined;
  fill(element, ...children);
  if (key !== undefined) focus(element, key);
}

export function byId(id) {
  return document.getElementById(id);
}

/** Show a dialog; gives what closed it. */
export async function answer(dialog) {
  const key = document.activeElement?.dataset.key;
  dialog.returnValue = "";
  dialog.showModal();
  dialog.querySelector("input")?.select();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  // What opened it may have been drawn anew meanwhile: then the browser does not find it again.
  if (key !== undefined) focus(document, key);
  return dialog.returnValue;
}

/** Ask before something is done. Fields are properties of inputs by their names; gives what they hold, or null. */
export async function confirmed(deed, question, fields = {}) {
  const inputs = Object.values(fields).map((each) => h("input", { autocomplete: "off", spellcheck: "false", ...each }));
  const dialog = h("dialog", { "aria-labelledby": "deed" },
    h("form", { method: "dialog" },
      h("h2", { id: "deed" }, deed),
      h("p", {}, question),
      ...Object.keys(fields).map((name, i) => h("label", {}, `${name} `, inputs[i])),
      h("div", { class: "buttons" },
        h("button", { type: "submit", value: "go" }, deed),
        h("button", { type: "submit", value: "", formnovalidate: true }, "Not now"))));
  document.body.append(dialog);
  const chosen = await answer(dialog);
  dialog.remove();
  return chosen === "go" ? inputs.map((each) => each.value.trim()) : null;
}

/** A table with a caption for those who cannot see where it stands. */
export function table(caption, headings, rows) {
  return h("div", { class: "scroll" },
    h("table", {},
      h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, ...headings.map((each) => h("th", { scope: "col" }, each)))),
      h("tbody", {}, ...rows)));
}

export function row(properties, ...cells) {
  return h("tr", properties, ...cells.map((each) => h("td", {}, each)));
}

/** A button; `key` tells it from others, so that it keeps the focus when its surroundings are drawn anew. */
export function button(text, key, onclick) {
  return h("button", { type: "button", "data-key": key, onclick }, text);
}

/** Say what came of a button, in a place that is not drawn anew: it stays until there is something else to say. */
export function say(id, ...children) {
  fill(byId(id), ...children);
  if (children.length > 0) byId(id).scrollIntoView({ block: "nearest" });
}

export function fault(error) {
  return h("p", { class: "fault", role: "alert" }, error.message);
}

/** A figure with so many digits behind the point, or a dash. */
export function number(value, digits = 0) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function bytes(value) {
  return value < 1e6 ? `${number(value / 1e3, 1)} kB` : `${number(value / 1e6, 1)} MB`;
}

export function seconds(value) {
  if (typeof value !== "number") return "–";
  if (value < 100) return `${number(value, 1)} s`;
  return value < 6000 ? `${number(value / 60)} min` : `${number(value / 3600, 1)} h`;
}

/** A time as people of this place write it: of today the hour, of other days the date; the exact one behind it. */
export function time(text) {
  const at = new Date(text);
  const today = at.toDateString() === new Date().toDateString();
  const shown = today ? at.toLocaleTimeString() : at.toLocaleDateString(undefined, { dateStyle: "medium" });
  return h("time", { datetime: text, title: text }, shown);
}

/** What a version or a pass reached on the dev corpus, in percent. */
export function scoreOf(dev) {
  return typeof dev?.f1 === "number" ? dev.f1 : dev?.accuracy;
}

function focus(within, key) {
  [...within.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key)?.focus();
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children.flat().filter((child) => child != null && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}
