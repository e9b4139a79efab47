// Learning curves: a panel a figure, a line a run, against passes.

import { h, number, svg } from "./dom.js";

const WIDTH = 480;
const HEIGHT = 220;
const [LEFT, RIGHT, TOP, BOTTOM] = [64, 10, 26, 34];
// An axis whose values span more than this factor is logarithmic.
const LOG_FROM = 25;
// As many as the style sheet has.
const COLOURS = 10;
// Up to so many points a line shows each of them.
const DOTS = 60;

/** Draw the panels. `runs` maps names to points with `pass`, `score` and `objective`. */
export function curves(runs) {
  const lines = [...runs].map(([name, points]) => ({ name, points }));
  const panels = [["score", "score on dev, %"], ["objective", "objective"]]
    .map(([field, title]) => panel(lines, field, title)).filter((each) => each !== null);
  if (panels.length === 0) return null;
  return h("figure", {}, h("div", { class: "panels" }, ...panels), legend(lines));
}

function panel(lines, field, title) {
  const drawn = lines.map(({ name, points }, place) => ({
    name, place, pairs: points.filter((each) => Number.isFinite(each[field])).map((each) => [each.pass, each[field]]),
  })).filter((each) => each.pairs.length > 0);
  if (drawn.length === 0) return null;
  const all = drawn.flatMap((each) => each.pairs);
  const across = linear(0, Math.max(...all.map(([x]) => x), 1));
  const up = axis(all.map(([, y]) => y), field === "objective");
  const x = (value) => LEFT + across.place(value) * (WIDTH - LEFT - RIGHT);
  const y = (value) => TOP + (1 - up.place(value)) * (HEIGHT - TOP - BOTTOM);
  const last = drawn.map(({ name, pairs }) => `${name} ${number(pairs.at(-1)[1], 2)}`).join(", ");
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "panel" },
    svg("title", {}, `${title} against passes; last: ${last}`),
    svg("text", { x: 4, y: 14, class: "title" }, title),
    ...up.ticks.flatMap((tick) => [
      svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(tick), y2: y(tick), class: "grid" }),
      svg("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, figure(tick)),
    ]),
    ...across.ticks.filter(Number.isInteger).map((tick) =>
      svg("text", { x: x(tick), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, figure(tick))),
    svg("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, "passes"),
    svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM, class: "axis" }),
    ...drawn.flatMap(({ place, pairs }) => {
      const points = pairs.map(([a, b]) => [x(a).toFixed(1), y(b).toFixed(1)]);
      const colour = `line c${place % COLOURS}`;
      const dots = points.length > DOTS ? [] : points.map(([cx, cy]) => svg("circle", { cx, cy, r: 2.4 }));
      return svg("g", { class: colour }, svg("polyline", { points: points.map((each) => each.join()).join(" ") }), ...dots);
    }));
}

function legend(lines) {
  if (lines.length < 2) return null;
  return h("figcaption", {}, ...lines.map(({ name }, place) =>
    h("span", { class: `key c${place % COLOURS}` }, name)));
}

function axis(values, mayLog) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  if (mayLog && low > 0 && high / low > LOG_FROM) return logarithmic(low / 1.1, high * 1.1);
  const room = 0.05 * (high - low) || 0.05 * Math.abs(high) || 1;
  return linear(low - room, high + room);
}

function linear(low, high) {
  const step = roundStep((high - low) / 5);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) {
    ticks.push(Number((i * step).toPrecision(12)));
  }
  return { place: (value) => (value - low) / (high - low), ticks };
}

function logarithmic(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    ticks.push(...[1, 2, 5].map((m) => m * 10 ** power).filter((tick) => tick >= low && tick <= high));
  }
  return { place: (value) => Math.log(value / low) / Math.log(high / low), ticks };
}

function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 2.5, 5, 10].map((m) => m * power).find((step) => step >= least * 0.999);
}

function figure(value) {
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3)) return value.toExponential();
  return value.toLocaleString("en", { maximumFractionDigits: 6 });
}
