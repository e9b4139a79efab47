// One corpus: its report, its faults, its sentences.

import { at, call, download } from "../api.js";
import { action, button, field, fill, h, panel, select } from "../dom.js";
import { typesOf } from "../colours.js";
import { bytes, columnsOf, corpusName, number, time } from "../format.js";
import { labelBars, lengths } from "../components/bars.js";
import { confirmed } from "../components/dialog.js";
import { labelled } from "../components/spans.js";
import { tree } from "../components/tree.js";
import { facts, table } from "../components/table.js";
import { fault, toast } from "../components/toast.js";
import { go, to } from "../router.js";

const PAGE = 10;

/** @param {HTMLElement} box @param {import("../router.js").Address} address @param {AbortSignal} signal */
export async function show(box, { path: [, reference] }, signal) {
  const path = at("corpora", reference);
  const [corpus, report] = await Promise.all([call(path, { signal }), call(`${path}/report`, { signal })]);
  document.title = `${corpusName(corpus)} · Tagsmith`;
  const said = h("div");
  const sample = sentences(path, corpus, report.bio_fault_count, signal);
  fill(box,
    h("div", { class: "row spread" }, h("h1", {}, corpusName(corpus)),
      h("div", { class: "row" },
        (corpus.labels.length > 0 || corpus.trees) && action("Train on this", to(["train"], { corpus: corpus.id }), { class: "button primary" }),
        button("Download", "download", () => download(`${path}/content`, `${corpus.name}.txt`).catch((error) => fill(said, fault(error)))),
        button("Delete", "delete", remove))),
    said,
    facts([
      ["Sentences", number(corpus.sentences)], ["Tokens", number(corpus.tokens)],
      ["Columns", columnsOf(corpus.columns)], ["Label coding", report.trees ? "dependency trees" : report.label_scheme ?? (corpus.labels.length ? "plain classes" : "no labels")],
      ["Format", corpus.format], ["Size", bytes(corpus.size_bytes)], ["Uploaded", time(corpus.created_at)],
    ]),
    h("div", { class: "sides" },
      corpus.labels.length > 0 && panel("Labels", labelBars(report.label_counts)),
      report.trees && panel("Relations", labelBars(report.trees.relation_counts, 30, "relation"), trees(report)),
      panel("Sentence lengths", lengths(report.length_histogram), quality(report))),
    faults(report),
    sample.element);
  await sample.read();

  async function remove() {
    const given = await confirmed("Delete", [`Delete ${corpusName(corpus)} with ${number(corpus.sentences)} sentences?`], {}, { danger: true });
    if (given === null) return;
    try {
      await call(path, { method: "DELETE" });
      toast(`${corpusName(corpus)} is deleted.`);
      go(["corpora"]);
    } catch (error) {
      fill(said, fault(error));
    }
  }
}

function quality(report) {
  const columns = Object.entries(report.vocabulary_sizes).filter(([name]) => name !== "label")
    .map(([name, size]) => [name === "0" ? "Distinct words" : `Distinct values of ${name}`, number(size)]);
  return facts([...columns, ["Duplicate sentences", number(report.duplicate_sentences)],
    ["Conflicting sentences", number(report.conflicting_sentences)], ["Repaired labels", number(report.repaired_labels)]]);
}

function trees({ sentences, trees: { arc_lengths: arcs, ...found } }) {
  const all = Object.values(arcs).reduce((sum, count) => sum + count, 0);
  const near = (arcs["1"] ?? 0) + (arcs["2"] ?? 0);
  return facts([["Sentences with crossing arcs", `${number(found.nonprojective_sentences)} of ${number(sentences)}`],
    ["Sentences with several roots", `${number(found.several_roots_sentences)} of ${number(sentences)}`],
    ["Arcs of length 1 or 2", all ? `${number((100 * near) / all, 1)} %` : "none"]]);
}

function faults(report) {
  if (report.bio_fault_count === 0) return null;
  return panel("Faults of the label coding",
    h("p", {}, `${number(report.bio_fault_count)} labels may not follow the label before them. Training reads them as the CoNLL scorer does. To fix them, upload the file again with “Repair labels”.`),
    table("Faults", [
      { name: "Sentence", right: true, show: (each) => number(each.sentence + 1), value: (each) => each.sentence },
      { name: "Token", right: true, show: (each) => number(each.token + 1) },
      ...(report.bio_faults.some((each) => each.line) ? [{ name: "Line", right: true, show: (each) => number(each.line) }] : []),
      { name: "Label", show: (each) => each.label, value: (each) => each.label },
      { name: "Comes after", show: (each) => each.previous ?? "the start of the sentence" },
    ], report.bio_faults.slice(0, 20)));
}

/** Sentences with their labels, page by page. */
function sentences(path, corpus, faults, signal) {
  const rows = h("ol", { class: "sentences" });
  const state = { label: "", faulty: false, offset: 0 };
  const choices = typesOf(corpus.labels).map((each) => [each, each]);
  const more = button("More sentences", "more sentences", () => read(), { hidden: true });
  const filter = corpus.labels.length > 0 && h("div", { class: "fields" },
    field("With label", select([["", "any"], ...choices], "", (label) => { state.label = label; restart(); }, { id: "with-label" })),
    faults > 0 && h("label", { class: "check" }, h("input", { type: "checkbox",
      onchange: (event) => { state.faulty = event.target.checked; restart(); } }), "Only sentences with faults"));
  return { element: panel("Sentences", filter, rows, more), read };

  function restart() {
    state.offset = 0;
    fill(rows);
    read();
  }

  async function read() {
    const query = new URLSearchParams({ offset: String(state.offset), limit: String(PAGE), ...(state.label && { label: state.label }), ...(state.faulty && { faulty: "true" }) });
    try {
      const page = await call(`${path}/sentences?${query}`, { signal });
      rows.append(...page.data.map((each) => h("li", {},
        h("span", { class: "quiet right" }, number(each.index + 1)), each.heads?.length > 0 ? tree(each) : labelled(each))));
      if (rows.childElementCount === 0) fill(rows, h("li", { class: "quiet" }, "No such sentence."));
      state.offset = Number(page.next_cursor) || state.offset + page.data.length;
      more.hidden = page.next_cursor === null;
    } catch (error) {
      if (!signal.aborted) rows.append(h("li", {}, fault(error)));
    }
  }
}
