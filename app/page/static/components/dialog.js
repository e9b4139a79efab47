// Modal dialogs.

import { activeKey, focusKey, h } from "../dom.js";

/** Show a dialog until it is closed, and remove it. Returns the value of the button that closed it. */
export async function opened(dialog) {
  const key = activeKey();
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector("input:not([type=checkbox])")?.select();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  dialog.remove();
  // What opened it may have been drawn again meanwhile: then the browser does not find it. The event comes some time
  // after the browser has given the focus back: whatever has got it since keeps it.
  if (key !== undefined && document.activeElement === document.body) focusKey(document, key);
  return dialog.returnValue;
}

/**
 * Ask before something is done.
 * @param {string} title Also the text of the button that does it.
 * @param {any[]} question Text or elements.
 * @param {Record<string, Record<string, any>>} [fields] Properties of inputs by their labels.
 * @returns {Promise<string[] | null>} The values of the fields, or null.
 */
export async function confirmed(title, question, fields = {}, { danger = false } = {}) {
  const inputs = Object.values(fields).map((each, i) =>
    h("input", { id: `confirm-${i}`, autocomplete: "off", spellcheck: "false", ...each }));
  const dialog = h("dialog", { "aria-labelledby": "confirm-title" },
    h("form", { method: "dialog" },
      h("h2", { id: "confirm-title" }, title),
      ...question.map((each) => (each instanceof Node ? each : h("p", {}, each))),
      ...Object.keys(fields).map((name, i) =>
        h("div", { class: "field" }, h("label", { for: `confirm-${i}` }, name), inputs[i])),
      h("div", { class: "buttons" },
        h("button", { type: "submit", value: "go", class: danger ? "primary danger" : "primary" }, title),
        h("button", { type: "submit", value: "", formnovalidate: true }, "Cancel"))));
  return (await opened(dialog)) === "go" ? inputs.map((each) => each.value.trim()) : null;
}
