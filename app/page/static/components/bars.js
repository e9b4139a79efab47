// Horizontal bars with names and values, histograms, and dots with whiskers.

import { h, svg } from "../dom.js";
import { number, signed } from "../format.js";
import { labelClass } from "../colours.js";
import { linear } from "./scale.js";

/**
 * Bars from the left; a table for those who listen.
 * @param {string} caption
 * @param {{ name: any, value: number, text?: string, colour?: string, title?: string }[]} rows
 */
export function bars(caption, rows) {
  const most = Math.max(...rows.map((each) => Math.abs(each.value)), 1e-12);
  return h("table", { class: "bars" },
    h("caption", { class: "unseen" }, caption),
    h("tbody", {}, ...rows.map(({ name, value, text = number(value), colour = "", title }) => h("tr", { title },
      h("th", { scope: "row" }, name),
      h("td", { class: "track", "aria-hidden": "true" },
        h("div", { class: `bar ${colour}`, style: { width: `${(100 * Math.abs(value)) / most}%` } })),
      h("td", { class: "right" }, text)))));
}

/** Counts of labels, or of another kind of names, as bars in the colours of the labels. */
export function labelBars(counts, most = 30, kind = "label") {
  const rows = Object.entries(counts).sort((a, b) => b[1] - a[1]);
  return h("div", {},
    bars(`Tokens per ${kind}`, rows.slice(0, most).map(([label, value]) => ({ name: label, value, colour: labelClass(label) }))),
    rows.length > most && h("p", { class: "quiet" }, `and ${rows.length - most} rarer ${kind}s`));
}

/**
 * Weights for and against: bars to the right and to the left of the middle.
 * @param {string} caption
 * @param {{ name: string, value: number }[]} rows
 */
export function balance(caption, rows) {
  const most = Math.max(...rows.map((each) => Math.abs(each.value)), 1e-12);
  return h("table", { class: "bars balance" },
    h("caption", { class: "unseen" }, caption),
    h("tbody", {}, ...rows.map(({ name, value }) => h("tr", {},
      h("th", { scope: "row" }, h("code", {}, name)),
      h("td", { class: "track", "aria-hidden": "true" }, h("div", {
        class: value < 0 ? "bar against" : "bar for",
        style: { width: `${(50 * Math.abs(value)) / most}%`, "margin-left": value < 0 ? `${50 - (50 * -value) / most}%` : "50%" },
      })),
      h("td", { class: "right" }, signed(value))))));
}

/**
 * How many sentences have which length.
 * @param {Record<string, number>} histogram Number of sentences by length.
 */
export function lengths(histogram) {
  const pairs = Object.entries(histogram).map(([length, count]) => [Number(length), count]);
  const longest = Math.max(...pairs.map(([length]) => length), 1);
  const width = Math.max(1, Math.ceil(longest / 30));
  const bins = new Array(Math.floor(longest / width) + 1).fill(0);
  for (const [length, count] of pairs) bins[Math.floor(length / width)] += count;
  const [height, bottom] = [180, 40];
  const up = linear(0, Math.max(...bins, 1), 4, true);
  const y = (value) => 8 + (1 - up.place(value)) * (height - 8 - bottom);
  const x = (place) => `${(100 * place) / bins.length}%`;
  const every = Math.ceil(bins.length / 6);
  return h("div", { class: "histogram" },
    svg("svg", { class: "chart", height, "aria-hidden": "true" }, ...up.ticks.map((tick) =>
      svg("text", { x: 40, y: y(tick) + 4, "text-anchor": "end" }, number(tick)))),
    svg("svg", { class: "chart", height, role: "img",
      "aria-label": `Sentence lengths: the longest sentence has ${longest} tokens` },
    ...up.ticks.map((tick) => svg("line", { x1: 0, x2: "100%", y1: y(tick), y2: y(tick), class: "grid" })),
    ...bins.map((count, i) => svg("rect", { x: x(i + 0.04), width: x(0.92), y: y(count), height: y(0) - y(count), class: "column" },
      svg("title", {}, `${width > 1 ? `${i * width} to ${(i + 1) * width - 1}` : i} tokens: ${number(count)} sentences`))),
    ...bins.map((_, i) => i % every === 0 && i < bins.length - 1 && svg("text", { x: x(i + 0.5), y: height - bottom + 16,
      "text-anchor": i === 0 ? "start" : "middle" }, i * width)),
    svg("text", { x: "50%", y: height - 6, "text-anchor": "middle" }, "tokens per sentence")));
}

/**
 * Means with their deviations, one line each.
 * @param {string} caption
 * @param {{ name: string, mean: number, deviation: number, best?: boolean }[]} rows
 */
export function whiskers(caption, rows) {
  const ends = rows.flatMap(({ mean, deviation }) => [mean - deviation, mean + deviation]);
  const scale = linear(Math.min(...ends) - 0.5, Math.max(...ends) + 0.5);
  const x = (value) => `${(100 * scale.place(value)).toFixed(2)}%`;
  return h("table", { class: "bars whiskers" },
    h("caption", { class: "unseen" }, caption),
    h("tbody", {}, ...rows.map(({ name, mean, deviation, best }) => h("tr", { class: best ? "best" : "" },
      h("th", { scope: "row" }, name),
      h("td", { class: "track", "aria-hidden": "true" }, svg("svg", { class: "whisker", height: 16, width: "100%" },
        svg("line", { x1: x(mean - deviation), x2: x(mean + deviation), y1: 8, y2: 8 }),
        svg("circle", { cx: x(mean), cy: 8, r: 5 }))),
      h("td", { class: "right" }, `${number(mean, 2)} ± ${number(deviation, 2)}`)))));
}
