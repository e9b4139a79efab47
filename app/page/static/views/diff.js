// The difference of two versions: scores, spec, labels, weights.

import { at, call } from "../api.js";
import { action, fill, h, panel } from "../dom.js";
import { number, signed, titleOfScore } from "../format.js";
import { facts, table } from "../components/table.js";
import { to } from "../router.js";
import { playgroundOf } from "./playground.js";

/** @param {HTMLElement} box @param {import("../router.js").Address} address @param {AbortSignal} signal */
export async function show(box, { path: [, name, , base, head] }, signal) {
  const query = new URLSearchParams({ base, head, top: "30" });
  const found = await call(`${at("models", name)}/compare?${query}`, { signal });
  document.title = `${name}: v${base} and v${head} · Tagsmith`;
  const scores = found.metrics.filter(({ name: each }) => /^\w+\.(f1|accuracy|precision|recall|uas|las)$|\.by_type\..*\.f1$/.test(each));
  const { weights } = found;
  fill(box,
    h("div", { class: "row spread" }, h("h1", {}, `${name}: v${base} → v${head}`),
      h("div", { class: "row" }, action("Both in the playground", playgroundOf(`${name}:${base}`, `${name}:${head}`)),
        action("Back to the model", to(["models", name])))),
    panel("Scores", scores.length === 0 ? h("p", { class: "quiet" }, "Neither version has scores.") : table("Scores", [
      { name: "Metric", show: (each) => titleOf(each.name), value: (each) => each.name },
      ...sides("base", "head", base, head, 2),
      { name: "Change", right: true, show: (each) => h("b", { class: each.change < 0 ? "worse" : each.change > 0 ? "better" : "quiet" }, signed(each.change)), value: (each) => each.change },
    ], scores)),
    panel("Spec", found.spec.length === 0 ? h("p", { class: "quiet" }, "The same spec.") : table("Differences of the spec", [
      { name: "Field", show: (each) => h("code", {}, each.pointer), value: (each) => each.pointer },
      { name: `v${base}`, show: (each) => text(each.base) }, { name: `v${head}`, show: (each) => text(each.head) },
    ], found.spec)),
    found.labels_added.length + found.labels_removed.length > 0 && panel("Labels", facts([
      ["Added", found.labels_added.join(", ") || "none"], ["Removed", found.labels_removed.join(", ") || "none"]])),
    panel("Weights", facts([["Added", number(weights.added)], ["Removed", number(weights.removed)],
      ["Changed", number(weights.changed)], ["Unchanged", number(weights.unchanged)]]),
    table("Weights that differ most", [
      { name: "Feature", show: (each) => (each.feature === null ? h("span", { class: "quiet" }, "transition") : h("code", {}, each.feature)), value: (each) => each.feature ?? "" },
      { name: "Label", show: (each) => (each.before === null ? each.label : `${each.before} → ${each.label}`), value: (each) => each.label },
      ...sides("base", "head", base, head, 3),
      { name: "Change", right: true, show: (each) => signed(each.head - each.base), value: (each) => each.head - each.base },
    ], weights.top)));
}

function sides(first, second, base, head, digits) {
  return [[first, base], [second, head]].map(([key, version]) => ({
    name: `v${version}`, right: true, show: (each) => number(each[key], digits), value: (each) => each[key] }));
}

/** "dev.by_type.PER.f1" is shown as "F1 of PER on dev". */
function titleOf(metric) {
  const [, corpus, type, name] = /^([^.]+)\.(?:by_type\.(.+)\.)?(\w+)$/.exec(metric) ?? [null, metric, undefined, ""];
  return `${titleOfScore(name)}${type === undefined ? "" : ` of ${type}`} on ${corpus}`;
}

function text(value) {
  return value === null ? h("span", { class: "quiet" }, "none") : h("code", {}, typeof value === "string" ? value : JSON.stringify(value));
}
