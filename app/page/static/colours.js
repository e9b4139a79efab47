// One colour per label, fixed by a hash of its name. Colour-blind readers can distinguish the palette.

// As many as the style sheet has.
const COLOURS = 12;
// Start of the hash (FNV-1a). Of many starts it gives the labels of common corpora the fewest equal colours.
const START = 0x811c9dc5 ^ 81650;

/**
 * The class that gives an element the colour of a label in `--colour`.
 * @param {string} label A type such as `PER`; a position such as `B-` is ignored.
 */
export function labelClass(label) {
  if (label === "O") return "none";
  const type = typeOf(label);
  let hash = START;
  for (let i = 0; i < type.length; i += 1) hash = Math.imul(hash ^ type.charCodeAt(i), 0x01000193);
  return seriesClass((hash ^ (hash >>> 15)) >>> 0);
}

/** The class of the n-th line of a chart. */
export function seriesClass(index) {
  return `c${index % COLOURS}`;
}

/** `B-PER` is of type `PER`. */
export function typeOf(label) {
  return /^[BIESLUM]-./.test(label) ? label.slice(2) : label;
}

/** The types of labels, without `O`. @param {string[]} labels */
export function typesOf(labels) {
  return [...new Set(labels.filter((each) => each !== "O").map(typeOf))];
}
