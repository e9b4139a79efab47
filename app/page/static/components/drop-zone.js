// Files dropped anywhere on the page, or chosen.

import { h } from "../dom.js";

/** @param {(file: File) => void} onFile */
export function acceptDrops(onFile) {
  const veil = h("div", { class: "veil", hidden: true, "aria-hidden": "true" }, h("p", {}, "Drop the corpus here"));
  document.body.append(veil);
  const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragover", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    veil.hidden = false;
  });
  addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) veil.hidden = true;
  });
  addEventListener("drop", (event) => {
    veil.hidden = true;
    const [file] = event.dataTransfer?.files ?? [];
    if (file === undefined) return;
    event.preventDefault();
    onFile(file);
  });
}

/** A button that opens the file dialog. @param {(file: File) => void} onFile */
export function fileButton(text, onFile) {
  const input = h("input", { type: "file", hidden: true,
    onchange: () => { if (input.files.length > 0) onFile(input.files[0]); input.value = ""; } });
  return h("span", {}, h("button", { type: "button", class: "primary", "data-key": "choose a file",
    onclick: () => input.click() }, text), input);
}
