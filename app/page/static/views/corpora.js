// Corpora: the list, and where files are dropped.

import { fill, h } from "../dom.js";
import { ago, bytes, corpusName, number } from "../format.js";
import { fileButton } from "../components/drop-zone.js";
import { noCorpus } from "../components/empty.js";
import { table } from "../components/table.js";
import { upload, uploadSample } from "../components/upload.js";
import { to } from "../router.js";
import { corpora } from "../state.js";
import { typesOf } from "../colours.js";

const SHOWN_TYPES = 5;

/** @param {HTMLElement} box */
export async function show(box) {
  const found = await corpora();
  if (found.length === 0) {
    fill(box, h("h1", {}, "Corpora"), noCorpus());
    return;
  }
  fill(box,
    h("div", { class: "row spread" }, h("h1", {}, "Corpora"),
      h("div", { class: "row" }, h("span", { class: "quiet wide-only" }, "Drop a file anywhere, or"),
        fileButton("Choose a file", upload), h("button", { type: "button", onclick: uploadSample }, "Load the sample"))),
    table("Corpora, newest first", [
      { name: "Name", show: (each) => h("a", { href: to(["corpora", each.id]) }, corpusName(each)), value: (each) => each.name },
      { name: "Sentences", right: true, show: (each) => number(each.sentences), value: (each) => each.sentences },
      { name: "Tokens", right: true, show: (each) => number(each.tokens), value: (each) => each.tokens },
      { name: "Columns", right: true, show: (each) => number(each.columns.length), value: (each) => each.columns.length },
      { name: "Labels", show: shortTypes },
      { name: "Format", show: (each) => each.format, value: (each) => each.format },
      { name: "Size", right: true, show: (each) => bytes(each.size_bytes), value: (each) => each.size_bytes },
      { name: "Uploaded", show: (each) => ago(each.created_at), value: (each) => each.created_at },
    ], found));
}

/** The types of labels, shortened. */
function shortTypes({ labels, trees }) {
  if (trees) return h("span", { class: "quiet" }, "trees");
  const types = typesOf(labels);
  if (types.length === 0) return h("span", { class: "quiet" }, "none");
  const more = types.length - SHOWN_TYPES;
  return h("span", { title: types.join(", ") }, types.slice(0, SHOWN_TYPES).join(", "), more > 0 && ` and ${more} more`);
}
