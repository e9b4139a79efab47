// Elements from plain values. Text is always a text node: nothing that was stored or typed is read as markup.

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Make an element. Properties that begin with "on" are listeners; `style` is an object of CSS properties.
 * @param {string} name
 * @param {Record<string, any>} [properties]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function h(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
}

/**
 * Make an element of a drawing.
 * @param {string} name
 * @param {Record<string, any>} [properties]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function svg(name, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, name), properties, children);
}

/** Replace the content of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

/**
 * Replace the content, and give the focus back to the element with the same `data-key`. While the pointer is pressed
 * inside, this waits for the release: a click counts only if the same element was pressed and released.
 */
export function refill(element, ...children) {
  if (pressed !== null && element.contains(pressed)) {
    waiting.set(element, children);
    return element;
  }
  const held = document.activeElement;
  const key = held && element.contains(held) ? held.dataset.key : undefined;
  fill(element, ...children);
  if (key !== undefined) focusKey(element, key);
  return element;
}

let pressed = null;
const waiting = new Map();

function released() {
  pressed = null;
  const drawings = [...waiting];
  waiting.clear();
  for (const [element, children] of drawings) refill(element, ...children);
}

addEventListener("pointerdown", ({ target }) => { pressed = target; }, true);
// The click follows the release in the same task.
for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => setTimeout(released), true);

let clicked;
addEventListener("click", ({ target }) => { clicked = target.closest?.("[data-key]")?.dataset.key; }, true);

/** Return the `data-key` of what has the focus or, if its surroundings were drawn again since, of what was clicked. */
export function activeKey() {
  return document.activeElement?.dataset?.key ?? clicked;
}

/** @param {ParentNode} within @param {string} key */
export function focusKey(within, key) {
  [...within.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key)?.focus();
}

/** @param {string} id @returns {any} */
export function byId(id) {
  return document.getElementById(id);
}

/**
 * Make a button. `key` identifies it, so that it keeps the focus when its surroundings are drawn again.
 * @param {string} text
 * @param {string} key
 * @param {(event: Event) => void} onclick
 * @param {Record<string, any>} [properties]
 */
export function button(text, key, onclick, properties = {}) {
  return h("button", { type: "button", "data-key": key, onclick, ...properties }, text);
}

/** Make a link that looks like a button. */
export function action(text, href, properties = {}) {
  return h("a", { class: "button", href, "data-key": `${text} ${href}`, ...properties }, text);
}

/** Make a labelled form field. A hint and a fault belong to the field. */
export function field(label, control, { hint = "", fault = "" } = {}) {
  control.id ||= `field-${label.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  const described = [hint && `${control.id}-hint`, fault && `${control.id}-fault`].filter(Boolean).join(" ");
  if (described) control.setAttribute("aria-describedby", described);
  if (fault) control.setAttribute("aria-invalid", "true");
  return h("div", { class: "field" },
    h("label", { for: control.id }, label), control,
    hint && h("small", { id: `${control.id}-hint`, class: "quiet" }, hint),
    fault && h("small", { id: `${control.id}-fault`, class: "fault" }, fault));
}

/** Make a select. Options are [value, text] pairs or values. */
export function select(options, chosen, onchange, properties = {}) {
  const made = h("select", { onchange: (event) => onchange(event.target.value), ...properties },
    ...options.map((each) => (Array.isArray(each) ? each : [each, each])).map(([value, text]) =>
      h("option", { value, selected: value === chosen }, text)));
  return made;
}

/** Make a panel: a section with a heading. */
export function panel(title, ...children) {
  const id = `panel-${(panels += 1)}`;
  return h("section", { class: "panel", "aria-labelledby": id }, h("h2", { id }, title), ...children);
}

let panels = 0;

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    // The content security policy forbids style attributes, not the style object.
    else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else if (name === "value" && "value" in element && element.tagName !== "OPTION") element.value = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children.flat(2).filter((child) => child != null && child !== false && child !== "")
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}
