// The same call as curl, Python, command line or JSON, to copy.

import { fill, h } from "../dom.js";
import { toast } from "./toast.js";

/**
 * @param {string} label
 * @param {() => Record<string, string>} texts Text by name; read when shown and copied.
 * @returns {{ element: HTMLElement, update: () => void }}
 */
export function snippets(label, texts) {
  let chosen = Object.keys(texts())[0];
  const tabs = h("div", { class: "segmented", role: "group", "aria-label": label });
  const code = h("pre", { class: "snippet", tabindex: "0", "aria-label": label });
  const copy = h("button", { type: "button", class: "small", onclick: copyText }, "Copy");
  const element = h("div", { class: "snippets" }, h("div", { class: "row spread" }, tabs, copy), code);

  function draw() {
    const all = texts();
    if (tabs.childElementCount === 0) {
      fill(tabs, ...Object.keys(all).map((name) => h("button", { type: "button", "data-name": name,
        onclick: () => { chosen = name; draw(); } }, name)));
    }
    for (const tab of tabs.children) tab.setAttribute("aria-pressed", String(tab.dataset.name === chosen));
    fill(code, all[chosen]);
  }

  async function copyText() {
    try {
      await navigator.clipboard.writeText(texts()[chosen]);
      toast("Copied.");
    } catch {
      // Without a secure origin there is no clipboard: select the text, so that Ctrl+C copies it.
      getSelection().selectAllChildren(code);
      toast("Selected. Press Ctrl+C to copy.");
    }
  }

  draw();
  return { element, update: draw };
}
