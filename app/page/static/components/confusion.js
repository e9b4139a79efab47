// Which labels are taken for which: a matrix of the most frequent mistakes.

import { h } from "../dom.js";
import { number } from "../format.js";
import { scrolling, table } from "./table.js";

const MOST = 24;

/**
 * @param {{ gold: string, predicted: string, count: number }[]} counts Right ones may be among them.
 */
export function confusion(counts) {
  const mistakes = counts.filter((each) => each.gold !== each.predicted);
  const labels = [...new Set(mistakes.flatMap((each) => [each.gold, each.predicted]))].sort();
  if (labels.length === 0) return h("p", { class: "good" }, "No label was taken for another.");
  return labels.length > MOST ? list(mistakes) : matrix(mistakes, labels);
}

function list(mistakes) {
  return table("Most frequent mistakes", [
    { name: "Gold", show: (each) => each.gold, value: (each) => each.gold },
    { name: "Predicted", show: (each) => each.predicted, value: (each) => each.predicted },
    { name: "Tokens", right: true, show: (each) => number(each.count), value: (each) => each.count },
  ], mistakes.slice(0, 30));
}

function matrix(mistakes, labels) {
  const most = Math.max(...mistakes.map((each) => each.count));
  const count = new Map(mistakes.map((each) => [`${each.gold}\n${each.predicted}`, each.count]));
  const text = "Rows: gold labels. Columns: predicted labels. Cells: wrong tokens.";
  return h("div", {}, h("p", { class: "quiet" }, text), scrolling("Confusion of labels", h("table", { class: "confusion" },
    h("caption", { class: "unseen" }, text),
    h("thead", {}, h("tr", {}, h("td"), ...labels.map((each) => h("th", { scope: "col" }, h("span", {}, each))))),
    h("tbody", {}, ...labels.map((gold) => h("tr", {}, h("th", { scope: "row" }, gold), ...labels.map((predicted) => {
      const found = count.get(`${gold}\n${predicted}`) ?? 0;
      return h("td", { class: gold === predicted ? "same" : "", style: { "--part": String(found / most) },
        title: found ? `${gold} taken for ${predicted}: ${found}` : null }, found || "");
    })))))));
}
