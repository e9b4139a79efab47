// What a view shows when there is nothing yet: how to go on.

import { action, h } from "../dom.js";
import { fileButton } from "./drop-zone.js";
import { upload, uploadSample } from "./upload.js";

/** Without a corpus. */
export function noCorpus() {
  return h("div", { class: "empty" },
    h("h2", {}, "No corpus yet"),
    h("p", {}, "Drop a labelled file anywhere on this page: CoNLL columns, CoNLL-U, JSON lines, segmented text or brat."),
    h("div", { class: "row" }, fileButton("Choose a file", upload),
      h("button", { type: "button", "data-key": "sample", onclick: uploadSample }, "Load the sample")),
    h("p", { class: "quiet" }, "The sample has 2,000 generated references to papers, with authors, titles and journals labelled."));
}

/** Without a model. @param {any[]} corpora */
export function noModel(corpora) {
  if (corpora.length === 0) return noCorpus();
  return h("div", { class: "empty" },
    h("h2", {}, "No model yet"),
    h("p", {}, `There ${corpora.length === 1 ? "is one corpus" : `are ${corpora.length} corpora`} to train on.`),
    action("Train a model", "#/train", { class: "button primary" }));
}
