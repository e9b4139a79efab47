// Results of jobs by kind: tables and plots.

import { at, download } from "../api.js";
import { button, fill, h, panel, select } from "../dom.js";
import { bytes, number, pValue, scoreName, scoreOf, seconds, signed, titleOfScore } from "../format.js";
import { labelClass } from "../colours.js";
import { whiskers } from "./bars.js";
import { confusion } from "./confusion.js";
import { differing, marked, spansOf } from "./spans.js";
import { facts, table } from "./table.js";
import { differences, tree } from "./tree.js";

const SHOWN = 10;
// Why a training ended before its last pass.
const STOPPED = {
  patience: ", no better score since", flat: ", the score is flat", max_seconds: ", the time is over",
  tolerance: ", the objective is flat", converged: ", converged",
};

/** @param {any} job A job that succeeded. @returns {HTMLElement} */
export function resultOf(job) {
  const draw = { train, evaluate, compare, tune, tag, rank }[job.kind];
  return draw === undefined ? h("pre", { class: "snippet" }, JSON.stringify(job.result, null, 2)) : draw(job.result, job);
}

/** Precision, recall and F1 of each type of span, or of each relation of trees. */
export function typesTable(types, trees = false) {
  const rows = Object.entries(types ?? {}).map(([type, each]) => ({ type, ...each, spans: each.support ?? each.gold }))
    .sort((a, b) => b.spans - a.spans);
  const [caption, type, spans] = trees ? ["Scores by relation", "Relation", "Arcs"] : ["Scores by type", "Type", "Spans"];
  if (rows.length === 0) {
    return h("p", { class: "quiet" }, trees ? "There are no relations to compare: only heads are counted."
      : "The labels code no spans: only accuracy is counted.");
  }
  const figure = (name, key) => ({ name, right: true, show: (row) => number(row[key], 2), value: (row) => row[key] });
  return table(caption, [
    { name: type, show: (row) => h("span", { class: `key ${labelClass(row.type)}` }, h("i", { class: "swatch" }), row.type), value: (row) => row.type },
    figure("Precision", "precision"), figure("Recall", "recall"), figure("F1", "f1"),
    { name: spans, right: true, show: (row) => number(row.spans), value: (row) => row.spans },
  ], rows, { cards: false });
}

function train(result) {
  const dev = result.metrics?.dev;
  const trees = dev?.score === "uas";
  return h("div", {},
    panel("Result", facts([
      ["Version", `${result.model}:${result.version}`],
      dev && [`Dev ${scoreName(dev)}`, number(scoreOf(dev), 2)], dev && !trees && ["Accuracy", number(dev.accuracy, 2)], trees && ["LAS", number(dev.las, 2)],
      ["Objective", number(result.objective, 2)], ["Active features", number(result.active_features)],
      ["Model file", bytes(result.size_bytes)], ["Passes", `${number(result.passes)}${STOPPED[result.stop_reason] ?? ""}`],
      ["Training", seconds(result.train_seconds)],
      result.promoted && ["Promoted to", result.promoted],
    ]), result.not_promoted && h("p", { class: "warning" }, result.not_promoted)),
    dev && panel(`Scores by ${trees ? "relation" : "type"} on dev`, typesTable(dev.by_type, trees)));
}

function evaluate(result) {
  const names = result.models.map((each) => `${each.model}:${each.version}`);
  const detail = h("div");
  const trees = result.models[0]?.metric === "uas";
  const choose = (name) => fill(detail, ...details(result.models[names.indexOf(name)]));
  choose(names[0]);
  const score = (name, key) => ({ name, right: true, show: (each) => number(each.metrics[key], 2), value: (each) => each.metrics[key] });
  return h("div", {},
    panel("Scores", table("Scores of versions", [
      { name: "Version", show: (each) => `${each.model}:${each.version}`, value: (each) => `${each.model}:${each.version}` },
      ...(trees ? [score("UAS", "uas"), score("LAS", "las"), score("UAS without punctuation", "uas_without_punctuation"), score("LAS without punctuation", "las_without_punctuation")]
        : [score("F1", "f1"), score("Precision", "precision"), score("Recall", "recall"), score("Accuracy", "accuracy")]),
      { name: "Sentences right", right: true, show: (each) => `${number(each.metrics.sentences_correct)} of ${number(each.metrics.sentences)}`, value: (each) => each.metrics.sentences_correct },
    ], result.models)),
    result.pairs.length > 0 && panel("Differences", table("Significance of differences", [
      { name: "Pair", show: (each) => `${each.base} → ${each.head}` },
      { name: `${trees ? "UAS" : "F1"} difference`, right: true, show: (each) => signed(each.bootstrap?.difference), value: (each) => each.bootstrap?.difference },
      { name: "95 % interval", right: true, show: (each) => `${signed(each.bootstrap?.low)} to ${signed(each.bootstrap?.high)}` },
      { name: "p (bootstrap)", right: true, show: (each) => pValue(each.bootstrap?.p_value), value: (each) => each.bootstrap?.p_value },
      { name: "p (McNemar)", right: true, show: (each) => pValue(each.mcnemar?.p_value), value: (each) => each.mcnemar?.p_value },
    ], result.pairs)),
    names.length > 1 && h("label", { class: "inline" }, "Details of ", select(names, names[0], choose)),
    detail);
}

function details(model) {
  const { confusion: counts, wrong_sentences: wrong } = model;
  const trees = model.metric === "uas";
  return [
    panel(`Scores by ${trees ? "relation" : "type"}`, typesTable(model.metrics.by_type, trees)),
    counts?.length > 0 && panel(trees ? "Confusion of relations, where the head is right" : "Confusion of labels", confusion(counts)),
    wrong?.length > 0 && panel("Wrong sentences", mistakes(wrong, trees ? wrongTree : wrongSpans)),
  ];
}

/** Sentences as they should be and as they are, differences marked. */
function mistakes(wrong, draw) {
  const rows = h("ol", { class: "sentences" });
  const more = button("Show all", "all mistakes", () => show(wrong.length), { hidden: wrong.length <= SHOWN });
  show(SHOWN);
  return h("div", {}, h("p", { class: "quiet" }, `The first ${wrong.length} wrong sentences. What differs is marked.`), rows, more);

  function show(count) {
    more.hidden = count >= wrong.length;
    fill(rows, ...wrong.slice(0, count).map((each) => h("li", {},
      h("span", { class: "quiet right" }, number(each.index + 1)), h("div", {}, draw(each)))));
  }
}

function wrongSpans({ tokens, gold, predicted }) {
  const [right, got] = [spansOf(gold), spansOf(predicted)];
  return [h("small", { class: "quiet" }, "gold"), marked({ tokens, spans: differing(right, got) }),
    h("small", { class: "quiet" }, "predicted"), marked({ tokens, spans: differing(got, right) })];
}

function wrongTree({ tokens, heads, relations, predicted_heads: gotHeads, predicted_relations: gotRelations }) {
  const right = { tokens, heads, relations: relations.length > 0 ? relations : undefined };
  const got = { tokens, heads: gotHeads, relations: gotRelations.length > 0 ? gotRelations : undefined };
  return [h("small", { class: "quiet" }, "gold"), tree({ ...right, differs: differences(right, got) }),
    h("small", { class: "quiet" }, "predicted"), tree({ ...got, differs: differences(got, right) })];
}

function compare(result) {
  const best = Math.max(...result.table.map((row) => row.score ?? -1));
  return panel("Runs", table("Runs, best score first", [
    { name: "Run", show: (row) => (row.error ? `${row.name}: ${row.error.message ?? row.error}` : row.name), value: (row) => row.name },
    { name: "Trainer", show: (row) => row.trainer, value: (row) => row.trainer },
    { name: `Dev ${titleOfScore(result.score)}`, right: true, show: (row) => number(row.score, 2), value: (row) => row.score },
    result.score === "uas" ? { name: "LAS", right: true, show: (row) => number(row.las, 2), value: (row) => row.las }
      : { name: "Accuracy", right: true, show: (row) => number(row.accuracy, 2), value: (row) => row.accuracy },
    { name: "Passes", right: true, show: (row) => number(row.passes), value: (row) => row.passes },
    { name: "Passes to near", right: true, show: (row) => number(row.passes_to_near), value: (row) => row.passes_to_near },
    { name: "Training", right: true, show: (row) => seconds(row.seconds), value: (row) => row.seconds },
    { name: "Active features", right: true, show: (row) => number(row.active_features), value: (row) => row.active_features },
    { name: "Objective", right: true, show: (row) => number(row.objective, 1), value: (row) => row.objective },
  ], result.table, { sorted: { column: 2, up: false }, rowClass: (row) => (row.score === best ? "best" : "") }));
}

function tune(result) {
  const fields = Object.keys(result.table[0]?.values ?? {});
  const scored = result.table.filter((row) => row.mean != null).sort((a, b) => b.mean - a.mean);
  const text = (row) => fields.map((each) => `${short(each)} ${JSON.stringify(row.values[each])}`).join(", ");
  return h("div", {},
    panel("Candidates", table("Candidates, best first", [
      { name: "Candidate", right: true, show: (row) => number(row.candidate), value: (row) => row.candidate },
      ...fields.map((each) => ({ name: short(each), right: true, show: (row) => JSON.stringify(row.values[each]), value: (row) => row.values[each] })),
      { name: `Mean ${titleOfScore(result.score)}`, right: true, show: (row) => (row.error ? String(row.error.message ?? row.error) : number(row.mean, 2)), value: (row) => row.mean },
      { name: "Deviation", right: true, show: (row) => number(row.deviation, 2), value: (row) => row.deviation },
      { name: "Passes done", right: true, show: (row) => number(row.passes, 1), value: (row) => row.passes },
      { name: "Training", right: true, show: (row) => seconds(row.seconds), value: (row) => row.seconds },
    ], result.table, { sorted: { column: fields.length + 1, up: false }, rowClass: (row) => (row.candidate === result.best?.candidate ? "best" : "") })),
    scored.length > 1 && panel("Mean and deviation of the folds", whiskers("Scores of candidates", scored.slice(0, 20).map((row) =>
      ({ name: text(row), mean: row.mean, deviation: row.deviation ?? 0, best: row.candidate === result.best?.candidate })))),
    result.trained && train(result.trained));
}

function tag(result, job) {
  return file(job, [["Tagged by", `${result.model}:${result.version}`]]);
}

function rank(result, job) {
  return file(job, [["Least sure", `${result.model}:${result.version}`], ["Measure", result.by], ["Distinct sentences", number(result.distinct)]],
    result.calibrated === false && h("p", { class: "quiet" }, "The version was not trained to give probabilities: its scores order sentences and mean no more."));
}

/** The file that a job has written. */
function file({ id, result }, more, note) {
  return panel("Output", facts([...more, ["Format", result.format], ["Sentences", number(result.sentences)],
    ["Tokens", number(result.tokens)], ["Size", bytes(result.size_bytes)]]), note,
  button("Download", "download output", () => download(`${at("jobs", id)}/output`, `${result.model}.${result.format}`)));
}

function short(path) {
  return path.replace(/^(trainer|features|stop)\./, "");
}
