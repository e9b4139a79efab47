// Axes: from values to places between 0 and 1, with round ticks.

// An axis whose values span more than this factor may be logarithmic.
const LOG_FROM = 25;

/** @typedef {{ low: number, high: number, place: (value: number) => number, ticks: number[] }} Scale */

/**
 * An axis for these values.
 * @param {number[]} values
 * @param {{ log?: boolean, most?: number }} [options] Whether it may be logarithmic, and the highest value there can be.
 * @returns {Scale}
 */
export function scaleOf(values, { log = false, most = Infinity } = {}) {
  const [low, high] = extent(values);
  if (log && low > 0 && high / low > LOG_FROM) return logarithmic(low / 1.1, high * 1.1);
  const room = 0.06 * (high - low) || 0.05 * Math.abs(high) || 1;
  return linear(low - room, Math.min(high + room, Math.max(high, most)));
}

/** @returns {[number, number]} */
export function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > high ? [0, 1] : [low, high];
}

/** @returns {Scale} */
export function linear(low, high, count = 5, whole = false) {
  const step = whole ? Math.max(1, roundStep((high - low) / count, [1, 2, 5, 10])) : roundStep((high - low) / count);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) {
    ticks.push(Number((i * step).toPrecision(12)));
  }
  return { low, high, place: (value) => (value - low) / (high - low || 1), ticks };
}

/** @returns {Scale} */
function logarithmic(low, high) {
  const decades = Math.log10(high / low);
  const multiples = decades > 4 ? [1] : decades > 2 ? [1, 3] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    ticks.push(...multiples.map((m) => m * 10 ** power).filter((tick) => tick >= low && tick <= high));
  }
  return { low, high, place: (value) => Math.log(value / low) / Math.log(high / low), ticks };
}

function roundStep(least, multiples = [1, 2, 2.5, 5, 10]) {
  if (!(least > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  return multiples.map((m) => m * power).find((step) => step >= least * 0.999) ?? 10 * power;
}
