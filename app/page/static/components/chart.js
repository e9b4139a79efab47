// A line or scatter chart: values on hover and by arrow keys, zoom by dragging, hidden series.

import { fill, h, svg } from "../dom.js";
import { compact } from "../format.js";
import { extent, linear, scaleOf } from "./scale.js";

const [LEFT, RIGHT, TOP, BOTTOM] = [60, 12, 12, 44];
const HEIGHT = 240;
// A line with up to this many points shows each of them.
const DOTS = 60;
// A drag shorter than this is a click.
const DRAG_PX = 6;

/**
 * @typedef {object} Series
 * @property {string} name
 * @property {string} colour A class of the style sheet.
 * @property {[number, number][]} points Sorted by x.
 * @property {boolean} [scatter] Points without a line.
 */

/**
 * @param {{ title: string, x: string, y: string, log?: boolean, logX?: boolean, fromZero?: boolean, most?: number }} options
 * @returns {{ element: HTMLElement, update: (series: Series[], x?: string) => void }}
 */
export function chart({ title, x: xName, y: yName, log = false, logX = false, fromZero = true, most }) {
  /** @type {Series[]} */
  let series = [];
  let width = 480;
  /** @type {[number, number] | null} */
  let zoom = null;
  let pointed = null;
  let dragged = null;
  let shown = null;

  const drawing = svg("svg", { class: "chart", role: "img", tabindex: "0", height: HEIGHT });
  const tip = h("div", { class: "tip", hidden: true });
  const reset = h("button", { type: "button", class: "plain small", hidden: true, onclick: () => zoomTo(null) }, "Reset zoom");
  const element = h("figure", { class: "chart-box" },
    h("figcaption", {}, h("span", {}, title), reset), h("div", { class: "plot" }, drawing, tip));

  drawing.addEventListener("pointermove", (event) => {
    if (dragged !== null) dragged.to = placeOf(event);
    point(nearest(placeOf(event)));
  });
  drawing.addEventListener("pointerleave", () => { dragged = null; point(null); });
  drawing.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse") dragged = { from: placeOf(event), to: placeOf(event) };
  });
  drawing.addEventListener("pointerup", () => {
    const { from, to } = dragged ?? { from: 0, to: 0 };
    dragged = null;
    if (Math.abs(to - from) > DRAG_PX) zoomTo([valueOf(Math.min(from, to)), valueOf(Math.max(from, to))]);
  });
  drawing.addEventListener("dblclick", () => zoomTo(null));
  drawing.addEventListener("blur", () => point(null));
  drawing.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.key in moves) step(moves[event.key]);
    else if (event.key === "+" && pointed !== null) zoomAround(pointed);
    else if (event.key === "Escape" && (zoom !== null || pointed !== null)) { zoomTo(null); point(null); }
    else return;
    event.preventDefault();
  });
  new ResizeObserver(([entry]) => {
    if (Math.abs(entry.contentRect.width - width) > 1 && entry.contentRect.width > 0) {
      width = entry.contentRect.width;
      draw();
    }
  }).observe(element);

  function visible() {
    const within = ([x]) => zoom === null || (x >= zoom[0] && x <= zoom[1]);
    return series.map((each) => ({ ...each, points: each.points.filter(within) })).filter((each) => each.points.length > 0);
  }

  function draw() {
    shown = visible();
    reset.hidden = zoom === null;
    const all = shown.flatMap((each) => each.points);
    if (all.length === 0) {
      fill(drawing, svg("text", { x: width / 2, y: HEIGHT / 2, "text-anchor": "middle" }, "No values yet"));
      return;
    }
    const xs = all.map(([x]) => x);
    const across = logX ? scaleOf(xs, { log: true })
      : fromZero && zoom === null ? ticked(0, Math.max(extent(xs)[1], 1e-9)) : around(extent(xs));
    const up = scaleOf(all.map(([, y]) => y), { log, most });
    const x = (value) => LEFT + across.place(value) * (width - LEFT - RIGHT);
    const y = (value) => TOP + (1 - up.place(value)) * (HEIGHT - TOP - BOTTOM);
    shown = Object.assign(shown, { across, up, x, y });
    drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    drawing.setAttribute("aria-label", described());
    fill(drawing, ...axes(across, up, x, y), ...shown.map((each) => line(each, x, y)),
      svg("g", { class: "marks" }));
    mark();
  }

  function around([low, high]) {
    return low === high ? ticked(low - 1, high + 1) : ticked(low, high);
  }

  function ticked(low, high) {
    return linear(low, high, width < 400 ? 4 : 6, xName === "passes");
  }

  function axes(across, up, x, y) {
    const ground = HEIGHT - BOTTOM;
    return [
      ...up.ticks.flatMap((tick) => [
        svg("line", { x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick), class: "grid" }),
        svg("text", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, compact(tick)),
      ]),
      ...across.ticks.map((tick) =>
        svg("text", { x: x(tick), y: ground + 18, "text-anchor": "middle" }, compact(tick))),
      svg("text", { x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, xName),
      svg("line", { x1: LEFT, x2: width - RIGHT, y1: ground, y2: ground, class: "axis" }),
    ];
  }

  function line({ colour, points, scatter }, x, y) {
    const places = points.map(([a, b]) => [x(a).toFixed(1), y(b).toFixed(1)]);
    const dots = places.length > DOTS ? [] : places.map(([cx, cy]) => svg("circle", { cx, cy, r: scatter ? 5 : 2.5 }));
    return svg("g", { class: `line ${colour}` },
      !scatter && svg("polyline", { points: places.map((each) => each.join()).join(" ") }), ...dots);
  }

  function described() {
    const [low, high] = extent(series.flatMap((each) => each.points.map(([x]) => x)));
    const last = series.map(({ name, points }) => `${name} ${compact(points.at(-1)?.[1] ?? NaN)}`).join(", ");
    return `${title} against ${xName} ${compact(low)} to ${compact(high)}; last values: ${last}`;
  }

  function placeOf(event) {
    const box = drawing.getBoundingClientRect();
    return ((event.clientX - box.left) / box.width) * width;
  }

  function valueOf(place) {
    const part = Math.min(1, Math.max(0, (place - LEFT) / (width - LEFT - RIGHT)));
    const { low, high } = shown.across;
    return logX ? low * (high / low) ** part : low + part * (high - low);
  }

  function nearest(place) {
    if (!shown?.x) return null;
    const value = valueOf(place);
    const near = steps().map((x) => [Math.abs(shown.x(x) - shown.x(value)), x]).sort((a, b) => a[0] - b[0]);
    return near[0]?.[1] ?? null;
  }

  function steps() {
    return [...new Set((shown ?? []).flatMap((each) => each.points.map(([x]) => x)))].sort((a, b) => a - b);
  }

  function step(by) {
    const all = steps();
    const at = pointed === null ? (by > 0 ? -1 : all.length) : all.indexOf(pointed);
    point(all[Math.min(all.length - 1, Math.max(0, at + by))] ?? null);
  }

  function point(x) {
    pointed = x;
    mark();
  }

  function mark() {
    const marks = drawing.querySelector(".marks");
    const found = pointed === null || !shown?.x ? [] : shown
      .map((each) => ({ ...each, at: each.points.find(([x]) => x === pointed) })).filter((each) => each.at);
    tip.hidden = found.length === 0;
    if (marks === null) return;
    const rubber = dragged !== null && Math.abs(dragged.to - dragged.from) > DRAG_PX && svg("rect", {
      class: "rubber", x: Math.min(dragged.from, dragged.to), width: Math.abs(dragged.to - dragged.from),
      y: TOP, height: HEIGHT - TOP - BOTTOM });
    if (found.length === 0) {
      fill(marks, rubber);
      return;
    }
    const place = shown.x(pointed);
    fill(marks, rubber, svg("line", { x1: place, x2: place, y1: TOP, y2: HEIGHT - BOTTOM, class: "cross" }),
      ...found.map(({ colour, at }) => svg("circle", { cx: place, cy: shown.y(at[1]), r: 4, class: `dot ${colour}` })));
    fill(tip, h("strong", {}, `${xName} ${compact(pointed)}`), ...found.map(({ name, colour, at }) =>
      h("div", {}, h("i", { class: `swatch ${colour}` }), `${name} `, h("b", {}, compact(at[1])))));
    const before = place > width / 2;
    tip.style.setProperty("left", before ? "auto" : `${place + 10}px`);
    tip.style.setProperty("right", before ? `${width - place + 10}px` : "auto");
  }

  function zoomTo(range) {
    const inside = range === null ? 2 : steps().filter((x) => x >= range[0] && x <= range[1]).length;
    if (inside < 2) return;
    zoom = range;
    draw();
  }

  function zoomAround(x) {
    const [low, high] = extent(steps());
    const quarter = (high - low) / 4;
    zoomTo([x - quarter, x + quarter]);
  }

  return {
    element,
    update(next, x = xName) {
      if (x !== xName) zoom = null;
      [series, xName] = [next, x];
      draw();
    },
    yName,
  };
}
