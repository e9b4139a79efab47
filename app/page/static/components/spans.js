// Text with labelled spans marked in it. The spacing of the text is kept.

import { h } from "../dom.js";
import { percent } from "../format.js";
import { labelClass, typeOf } from "../colours.js";

// A span less probable than this is drawn with a dotted line.
const WEAK = 0.8;

/**
 * @typedef {object} Span
 * @property {string} type
 * @property {number} start First token.
 * @property {number} stop First token after it.
 * @property {number} [probability]
 * @property {boolean} [differs] Whether another version has no such span.
 */

/**
 * @typedef {object} Marked
 * @property {string[]} tokens
 * @property {Span[]} spans
 * @property {string} [text] The text of the tokens, with `offsets`.
 * @property {[number, number][]} [offsets]
 * @property {(token: number) => void} [onToken] Called when a token is chosen.
 */

/**
 * A paragraph with marked spans.
 * @param {Marked} marked
 */
export function marked({ tokens, spans, text, offsets, onToken }) {
  const starts = new Map(spans.map((span) => [span.start, span]));
  const parts = [];
  for (let at = 0; at < tokens.length;) {
    const span = starts.get(at);
    const stop = Math.max(at + 1, span?.stop ?? at + 1);
    const inside = [];
    for (let i = at; i < stop && i < tokens.length; i += 1) {
      if (i > at) inside.push(gap(i));
      inside.push(token(tokens[i], i, onToken));
    }
    parts.push(gap(at), span ? mark(span, inside) : inside);
    at = stop;
  }
  if (text !== undefined && offsets?.length) parts.push(text.slice(offsets.at(-1)[1]));
  const box = h("div", { class: "marked" }, parts);
  if (onToken !== undefined) walkable(box);
  return box;

  function gap(i) {
    if (text !== undefined && offsets) return text.slice(i > 0 ? offsets[i - 1][1] : 0, offsets[i][0]);
    return i > 0 ? " " : "";
  }
}

/** A sentence of a corpus: tokens, labels, and its spans if the labels code spans. */
export function labelled({ tokens, labels = [], spans = [] }) {
  const found = spans.length > 0 ? spans : spansOf(labels);
  return marked({ tokens, spans: found });
}

/**
 * Spans of labels: runs of `B-X I-X`, or every token of a plain class.
 * @param {string[]} labels
 * @returns {Span[]}
 */
export function spansOf(labels) {
  if (!labels.some((label) => /^[BIESLUM](-|$)/.test(label))) {
    return labels.map((type, i) => ({ type, start: i, stop: i + 1 })).filter((each) => each.type && each.type !== "O");
  }
  const found = [];
  labels.forEach((label, i) => {
    if (label === "O" || !label) return;
    const last = found.at(-1);
    const continues = /^[IEML]/.test(label) && last?.stop === i && last.type === typeOf(label);
    if (continues) last.stop = i + 1;
    else found.push({ type: typeOf(label), start: i, stop: i + 1 });
  });
  return found;
}

/** Mark spans that are not among others. @param {Span[]} spans @param {Span[]} others */
export function differing(spans, others) {
  const known = new Set(others.map(spanKey));
  return spans.map((each) => ({ ...each, differs: !known.has(spanKey(each)) }));
}

/** @param {Span} span */
export function spanKey({ type, start, stop }) {
  return `${type} ${start} ${stop}`;
}

function mark(span, inside) {
  const { type, probability, differs } = span;
  const weak = probability !== undefined && probability < WEAK;
  return h("mark", {
    class: `span ${labelClass(type)}${weak ? " weak" : ""}${differs ? " differs" : ""}`,
    style: { "--sure": String(probability ?? 1) },
  }, inside, type && h("b", { class: "type" }, type, probability !== undefined && ` ${percent(probability)}`,
    differs && h("span", { class: "unseen" }, " differs")));
}

function token(text, index, onToken) {
  if (onToken === undefined) return h("span", {}, text);
  return h("span", { class: "token", role: "button", tabindex: "-1", "data-token": index,
    onclick: () => onToken(index) }, text);
}

/** One tab stop for all tokens; arrow keys go from one to the next, Enter chooses. */
function walkable(box) {
  const tokens = [...box.querySelectorAll(".token")];
  tokens[0]?.setAttribute("tabindex", "0");
  box.addEventListener("keydown", (event) => {
    const at = tokens.indexOf(event.target);
    if (at < 0) return;
    if (event.key === "Enter" || event.key === " ") tokens[at].click();
    else if (event.key === "ArrowRight") tokens[Math.min(at + 1, tokens.length - 1)].focus();
    else if (event.key === "ArrowLeft") tokens[Math.max(at - 1, 0)].focus();
    else return;
    event.preventDefault();
  });
}
