// Learning curves: three charts with one legend, over passes or seconds, of one or several runs.

import { fill, h } from "../dom.js";
import { seriesClass } from "../colours.js";
import { chart } from "./chart.js";

/** @typedef {{ pass: number, seconds?: number, score?: number, objective?: number, active?: number }} CurvePoint */
/** @typedef {{ name: string, points: CurvePoint[], key?: string }} Run A run keeps its colour by its key, or its name. */

const PANELS = [
  { field: "score", title: "Score on dev, %", log: false, most: 100 },
  { field: "objective", title: "Objective", log: true },
  { field: "active", title: "Active features", log: true },
];
// More points than a chart has pixels are not seen.
const DRAWN_POINTS = 600;
const AXES = { pass: "passes", seconds: "seconds" };

/**
 * @returns {{ element: HTMLElement, update: (runs: Run[]) => void }}
 */
export function curves() {
  /** @type {Run[]} */
  let runs = [];
  let axis = "pass";
  /** @type {Set<string>} */
  const hidden = new Set();
  /** Runs keep their colour when others come and go. @type {Map<string, number>} */
  const places = new Map();
  const charts = PANELS.map(({ title, log, most }) => chart({ title, x: AXES[axis], y: title, log, most }));
  const legend = h("div", { class: "legend", role: "group", "aria-label": "Runs" });
  const axes = h("div", { class: "segmented", role: "group", "aria-label": "Horizontal axis" });
  const empty = h("p", { class: "quiet" }, "The curve begins with the first pass.");
  const element = h("div", { class: "curves" },
    h("div", { class: "row spread" }, legend, axes), empty, h("div", { class: "charts" }, ...charts.map((each) => each.element)));

  function draw() {
    for (const run of runs) if (!places.has(keyOf(run))) places.set(keyOf(run), places.size);
    const any = runs.some((run) => run.points.length > 0);
    empty.hidden = any;
    PANELS.forEach(({ field }, i) => {
      const series = runs.filter((run) => !hidden.has(run.name)).map((run) => ({
        name: run.name, colour: colourOf(run),
        points: thinned(run.points).filter((each) => Number.isFinite(each[field]) && Number.isFinite(each[axis]))
          .map((each) => /** @type {[number, number]} */ ([each[axis], each[field]])),
      })).filter((each) => each.points.length > 0);
      const drawable = runs.some((run) => run.points.some((each) => Number.isFinite(each[field])));
      charts[i].element.hidden = !drawable;
      if (drawable) charts[i].update(series, AXES[axis]);
    });
    drawControls(any);
  }

  function drawControls(any) {
    const state = JSON.stringify([runs.map((run) => run.name), [...hidden], axis, any]);
    if (legend.dataset.state === state) return;
    legend.dataset.state = state;
    fill(legend, ...(runs.length < 2 ? [] : runs.map((run) => h("button", {
      type: "button", class: `key ${colourOf(run)}`, "aria-pressed": String(!hidden.has(run.name)),
      title: hidden.has(run.name) ? "Show" : "Hide", onclick: () => toggle(run.name),
    }, h("i", { class: "swatch" }), run.name))));
    fill(axes, ...(any ? Object.entries(AXES).map(([key, text]) => h("button", {
      type: "button", "aria-pressed": String(axis === key), onclick: () => { axis = key; draw(); },
    }, text)) : []));
  }

  function colourOf(run) {
    return seriesClass(places.get(keyOf(run)) ?? 0);
  }

  function toggle(name) {
    if (!hidden.delete(name)) hidden.add(name);
    const index = [...legend.children].indexOf(document.activeElement);
    draw();
    legend.children[index]?.focus();
  }

  draw();
  return { element, update: (next) => { runs = next; draw(); } };
}

/** @param {Run} run */
function keyOf(run) {
  return run.key ?? run.name;
}

/** Evenly spaced points, with the first and the last. */
function thinned(points) {
  if (points.length <= DRAWN_POINTS) return points;
  const step = (points.length - 1) / (DRAWN_POINTS - 1);
  return Array.from({ length: DRAWN_POINTS }, (_, i) => points[Math.round(i * step)]);
}

/** The points of a stored curve of a job's result. @returns {CurvePoint[]} */
export function pointsOf(curve) {
  return (curve ?? []).map((each) => ({
    pass: each.pass, seconds: each.seconds, score: each.dev_score ?? undefined, objective: each.objective ?? undefined,
    active: each.active_features ?? undefined,
  }));
}
