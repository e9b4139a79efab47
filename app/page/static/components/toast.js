// Short messages about what came of an action, and faults that stay where they belong.

import { byId, fill, h } from "../dom.js";

const SHOWN_MS = 6000;

/** Say what was done. */
export function toast(text) {
  const made = h("p", { class: "toast" }, text);
  byId("toasts").append(made);
  setTimeout(() => made.remove(), SHOWN_MS);
}

/** A fault, with the places that it names. */
export function fault(error) {
  const places = error.places ?? [];
  return h("div", { class: "notice", role: "alert" },
    h("p", {}, error.detail ?? error.message),
    places.length > 0 && h("ul", {}, ...places.slice(0, 10).map((each) =>
      h("li", {}, each.line ? `Line ${each.line}: ` : "", each.pointer ? h("code", {}, `${each.pointer} `) : "",
        each.detail))),
    places.length > 10 && h("p", {}, `and ${places.length - 10} more.`));
}

/** Show or hide the notice above all views. */
export function notice(text) {
  const box = byId("notice");
  if (box.textContent !== text) fill(box, text);
  box.hidden = text === "";
}
