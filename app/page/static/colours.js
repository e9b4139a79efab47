// One colour per label, fixed by a hash of its name. The palette can be told apart by the colour-blind.

/** As many as the style sheet has. */
export const COLOURS = 10;

/**
 * The class that gives an element the colour of a label in `--colour`.
 * @param {string} label A type such as `PER`; a position such as `B-` is ignored.
 */
export function labelClass(label) {
  const type = typeOf(label);
  let hash = 0x811c9dc5;
  for (let i = 0; i < type.length; i += 1) hash = Math.imul(hash ^ type.charCodeAt(i), 0x01000193);
  return `c${((hash ^ (hash >>> 15)) >>> 0) % COLOURS}`;
}

/** The class of the n-th line of a chart. */
export function seriesClass(index) {
  return `c${index % COLOURS}`;
}

/** `B-PER` is of type `PER`. */
export function typeOf(label) {
  return /^[BIESLUM]-./.test(label) ? label.slice(2) : label;
}
