// A dependency tree: words in a row, an arc from each head to its word, and the same as a table.

import { h, svg } from "../dom.js";
import { percent } from "../format.js";
import { labelClass } from "../colours.js";
import { scrolling, table } from "./table.js";

// Of the drawing, in pixels. The text of words has 16, that of relations 13.
const [WORD, LABEL] = [16, 13];
const [GAP, LEVEL, FOOT, EDGE, ROUND] = [20, 30, 30, 16, 10];
// Between the ends of arcs at one word.
const APART = 7;
// An arc less probable than this is drawn with a dotted line.
const WEAK = 0.8;

/**
 * @typedef {object} Tree
 * @property {string[]} tokens
 * @property {number[]} heads Numbers of tokens from 1; 0 for a root.
 * @property {string[]} [relations]
 * @property {number[]} [marginals] Probabilities of the heads.
 * @property {boolean[]} [differs] Whether another tree has another head or relation.
 * @property {(token: number) => void} [onToken] Called when a word or its arc is chosen.
 */

/**
 * The drawing and the table.
 * @param {Tree} tree
 */
export function tree(given) {
  const { tokens, heads, relations, marginals } = given;
  const rows = tokens.map((_, i) => ({ i, head: heads[i], relation: relations?.[i], sure: marginals?.[i] }));
  const named = (number) => (number === 0 ? "root" : `${number} ${tokens[number - 1]}`);
  return h("div", { class: "tree" }, scrolling(`Tree of: ${tokens.join(" ")}`, drawing(given)),
    h("details", {}, h("summary", {}, "As a table"), table("Heads", [
      { name: "Word", show: (row) => named(row.i + 1), value: (row) => row.i },
      { name: "Head", show: (row) => named(row.head), value: (row) => row.head },
      ...(relations ? [{ name: "Relation", show: (row) => row.relation, value: (row) => row.relation }] : []),
      ...(marginals ? [{ name: "Probability", right: true, show: (row) => percent(row.sure), value: (row) => row.sure }] : []),
    ], rows, { cards: true })));
}

/** The words and arcs. */
function drawing({ tokens, heads, relations, marginals, differs, onToken }) {
  const arcs = heads.map((head, i) => ({
    word: i + 1, head, from: Math.min(head || i + 1, i + 1), to: Math.max(head, i + 1),
    text: relations?.[i] ?? (head === 0 ? "root" : ""), sure: marginals?.[i], differs: differs?.[i] ?? false,
  }));
  const levels = levelsOf(arcs);
  const top = Math.max(...levels, 1) + 1; // the names of roots are above all arcs
  const places = placesOf(tokens, arcs);
  const base = EDGE + top * LEVEL;
  const ends = endsOf(arcs, places);
  const size = { width: places.at(-1) + width(tokens.at(-1), WORD) / 2 + EDGE, height: base + FOOT };
  const drawn = svg("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}`, role: "group", "aria-label": "Words and arcs" });
  const choose = (token) => () => onToken?.(token);
  for (const arc of [...arcs].sort((a, b) => levels[b.word - 1] - levels[a.word - 1])) {
    const height = base - levels[arc.word - 1] * LEVEL;
    const path = arc.head === 0 ? `M ${ends.in[arc.word]} ${EDGE + LABEL} V ${base - 2}`
      : bow(ends.out.get(arc.word), ends.in[arc.word], base - 2, height);
    const middle = arc.head === 0 ? ends.in[arc.word] : (ends.out.get(arc.word) + ends.in[arc.word]) / 2;
    const weak = arc.sure !== undefined && arc.sure < WEAK;
    drawn.append(svg("g", { class: `arc ${labelClass(arc.text)}${weak ? " weak" : ""}${arc.differs ? " differs" : ""}`,
      "data-word": arc.word, onclick: choose(arc.word - 1) },
    svg("title", {}, titleOf(arc, tokens)),
    svg("path", { class: "reach", d: path }), svg("path", { d: path }), arrow(ends.in[arc.word], base - 2),
    arc.text && label(arc.text, middle, arc.head === 0 ? EDGE + LABEL / 2 : height)));
  }
  tokens.forEach((token, i) => drawn.append(svg("text", {
    class: `word${onToken ? " token" : ""}`, x: places[i], y: base + WORD + 4, "text-anchor": "middle", "data-token": i,
    ...(onToken && { role: "button", tabindex: i === 0 ? "0" : "-1", "aria-label": titleOf(arcs[i], tokens), onclick: choose(i) }),
  }, token)));
  if (onToken) walkable(drawn, tokens.length, onToken);
  return drawn;
}

/** "wrote: nsubj of Ada, 98 %" in words. */
function titleOf({ word, head, text, sure, differs }, tokens) {
  const role = head === 0 ? `root${text === "root" || !text ? "" : ` (${text})`}` : `${text || "modifier"} of ${tokens[head - 1]}`;
  return `${tokens[word - 1]}: ${role}${sure === undefined ? "" : `, ${percent(sure)}`}${differs ? ", differs" : ""}`;
}

/** The height of each arc: above all shorter ones that it spans or crosses. */
function levelsOf(arcs) {
  const levels = new Array(arcs.length).fill(1);
  const done = [];
  for (const arc of [...arcs].filter((each) => each.head > 0).sort((a, b) => (a.to - a.from) - (b.to - b.from))) {
    const below = done.filter((other) => other.from < arc.to && arc.from < other.to).map((other) => levels[other.word - 1]);
    levels[arc.word - 1] = 1 + Math.max(0, ...below);
    done.push(arc);
  }
  return levels;
}

/** The middles of the words: far enough apart for the words, and for the relation between two neighbours. */
function placesOf(tokens, arcs) {
  const between = new Array(tokens.length).fill(0);
  for (const arc of arcs) if (arc.head > 0 && arc.to - arc.from === 1) between[arc.to - 1] = Math.max(between[arc.to - 1], width(arc.text, LABEL) + 3 * APART + 2 * ROUND);
  const roots = arcs.map((arc) => (arc.head === 0 ? width(arc.text, LABEL) : 0));
  const first = Math.max(width(tokens[0] ?? "", WORD), roots[0] ?? 0) / 2 + EDGE;
  const places = [first];
  for (let i = 1; i < tokens.length; i += 1) {
    const words = (width(tokens[i - 1], WORD) + width(tokens[i], WORD)) / 2 + GAP;
    places.push(places[i - 1] + Math.max(words, between[i], (roots[i - 1] + roots[i]) / 2 + GAP));
  }
  return places;
}

/** Where arcs begin (`out`, by the word they lead to) and end (`in`): next to each other, so that none cover another. */
function endsOf(arcs, places) {
  const ends = { in: [], out: new Map() };
  places.forEach((place, i) => {
    const word = i + 1;
    const side = (arc) => (arc.head === 0 ? 0 : (arc.word === word ? arc.head : arc.word) - word);
    const here = arcs.filter((arc) => arc.word === word || arc.head === word);
    // From the left: short arcs to the left, then long ones; the root; long ones to the right, then short ones.
    const rank = (arc) => (side(arc) === 0 ? 0 : 1 / side(arc));
    here.sort((a, b) => rank(a) - rank(b));
    here.forEach((arc, k) => {
      const at = place + (k - (here.length - 1) / 2) * APART;
      if (arc.word === word) ends.in[word] = at;
      else ends.out.set(arc.word, at);
    });
  });
  return ends;
}

/** A line up, along and down, with round corners. */
function bow(from, to, base, height) {
  const round = Math.min(ROUND, Math.abs(to - from) / 2);
  const way = to > from ? round : -round;
  return `M ${from} ${base} V ${height + round} Q ${from} ${height} ${from + way} ${height} H ${to - way} Q ${to} ${height} ${to} ${height + round} V ${base}`;
}

function arrow(x, y) {
  return svg("path", { class: "tip-of-arc", d: `M ${x - 4} ${y - 7} L ${x} ${y} L ${x + 4} ${y - 7} Z` });
}

/** The name of a relation on a ground of its own, which hides the line behind it. */
function label(text, x, y) {
  const wide = width(text, LABEL) + 6;
  return [svg("rect", { class: "ground", x: x - wide / 2, y: y - LABEL / 2 - 2, width: wide, height: LABEL + 4 }),
    svg("text", { class: "relation", x, y: y + LABEL / 2 - 2, "text-anchor": "middle" }, text)];
}

let context = null;

/** The width of a text as the page draws it. */
function width(text, size) {
  context ??= document.createElement("canvas").getContext("2d");
  context.font = `${size === LABEL ? "600 " : ""}${size}px ${getComputedStyle(document.body).fontFamily}`;
  return context.measureText(text).width;
}

/** One tab stop for all words; arrow keys go from one to the next, Enter chooses. */
function walkable(drawn, count, onToken) {
  const word = (i) => drawn.querySelector(`[data-token="${Math.min(Math.max(i, 0), count - 1)}"]`);
  drawn.addEventListener("keydown", (event) => {
    const at = Number(event.target.dataset?.token ?? NaN);
    if (Number.isNaN(at)) return;
    if (event.key === "Enter" || event.key === " ") onToken(at);
    else if (event.key === "ArrowRight") word(at + 1).focus();
    else if (event.key === "ArrowLeft") word(at - 1).focus();
    else return;
    event.preventDefault();
  });
}

/** Mark the words that have another head or relation in another tree of the same words. */
export function differences(mine, other) {
  const same = other && other.tokens.length === mine.tokens.length && mine.tokens.every((token, i) => token === other.tokens[i]);
  return same ? mine.heads.map((head, i) => head !== other.heads[i] || mine.relations?.[i] !== other.relations?.[i]) : mine.heads.map(() => false);
}
