// The dialog that asks for an API key.

import { h } from "../dom.js";
import { opened } from "./dialog.js";

// The dialog that is open, and whether it was left without a key: then it is not opened again unasked.
let asking = null;
let declined = false;

/**
 * Let somebody give, change or forget the key. Resolves to whether there is another one now.
 * @param {string} reason
 * @param {{ set: (key: string) => void, forget: () => void }} key
 * @param {{ unasked?: boolean }} [how] Whether the page asks on its own: it does so once.
 */
export function askForKey(reason, key, { unasked = true } = {}) {
  if (unasked && declined && asking === null) return Promise.resolve(false);
  asking ??= ask(reason, key).finally(() => { asking = null; });
  return asking;
}

async function ask(reason, key) {
  const input = h("input", { id: "key-input", type: "password", autocomplete: "off", spellcheck: "false" });
  const dialog = h("dialog", { id: "key-dialog", "aria-labelledby": "key-title" },
    h("form", { method: "dialog" },
      h("h2", { id: "key-title" }, "Key"),
      h("p", { id: "key-reason" }, reason),
      h("div", { class: "field" }, h("label", { for: "key-input" }, "Key"), input),
      h("p", { class: "quiet" }, "Kept in this tab until it is closed, and sent to this server only."),
      h("div", { class: "buttons" },
        h("button", { type: "submit", value: "use", class: "primary" }, "Use"),
        h("button", { type: "submit", value: "forget" }, "Forget"),
        h("button", { type: "submit", value: "" }, "Cancel"))));
  const chosen = await opened(dialog);
  const given = input.value.trim();
  if (chosen === "forget") key.forget();
  const used = chosen === "use" && given !== "";
  if (used) key.set(given);
  declined = !used;
  return used;
}
