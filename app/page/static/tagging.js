// Tagging for the playground: from what was typed to spans, and the same call in other languages.

import { call } from "./api.js";
import { pythonOf, quoted } from "./format.js";
import { spanKey, spansOf } from "./components/spans.js";

const ALTERNATIVES = 5;

/** @typedef {import("./components/spans.js").Span} Span */

/**
 * @typedef {object} Tagged
 * @property {string} reference The version, as `name:3`.
 * @property {string[]} tokens
 * @property {Span[]} spans
 * @property {string} [text]
 * @property {[number, number][]} [offsets]
 * @property {{ probability: number, spans: Span[] }[]} alternatives
 * @property {boolean} calibrated Whether the probabilities mean anything.
 * @property {boolean} words Whether the spans are words of text without spaces.
 */

/**
 * @typedef {object} Parsed
 * @property {string} reference The version, as `name:3`.
 * @property {string[]} tokens
 * @property {{ first: number, tokens: string[], heads: number[], relations?: string[], marginals?: number[] }[]} trees One per sentence, from the token `first` on.
 * @property {number} [probability] Of all trees together.
 * @property {boolean} calibrated
 */

/** What was typed, as the body of a request: lines of text, or rows of tokens. Throws if a token is no JSON. */
export function given(typed, takesText) {
  return takesText ? { text: typed.split("\n").filter((line) => line.trim() !== "") } : { sentences: sentencesOf(typed) };
}

/** Tag what was typed. @returns {Promise<Tagged[]>} One entry per text or sentence. */
export async function tag(model, body, signal) {
  const post = (more) => call("/tag", { method: "POST", body: { model, ...body, ...more }, signal });
  const wanted = { output: "spans", marginals: true };
  const found = await post({ ...wanted, nbest: ALTERNATIVES }).catch((error) => {
    // Not every model and text has alternatives.
    if (!error.places?.some((each) => each.pointer?.startsWith("/nbest"))) throw error;
    return post(wanted);
  });
  // By its number, so that all responses are of one version even if the alias moves in between.
  const reference = `${found.model}:${found.version}`;
  const plain = !found.words?.length && found.spans.every((each) => each.length === 0)
    ? (await call("/tag", { method: "POST", body: { model: reference, ...body } })).tags : null;
  return found.spans.map((spans, i) => {
    const words = found.words?.[i];
    const tokens = words ?? found.tokens?.[i] ?? body.sentences[i].map(wordOf);
    const marginals = found.marginals?.[i];
    const sure = (each) => ({ ...each, probability: found.calibrated === false ? undefined
      : each.probability ?? least(marginals, each.start, each.stop) });
    const drawn = words ? words.map((_, j) => ({ type: "", start: j, stop: j + 1 }))
      : (plain ? spansOf(plain[i]) : spans).map(sure);
    const nbest = found.nbest?.[i];
    return {
      reference, tokens, spans: drawn, text: body.text?.[i],
      offsets: found.offsets && inUnits(body.text[i], found.offsets[i]), words: words !== undefined, calibrated: found.calibrated !== false,
      alternatives: plain || words || !nbest ? [] : distinct(nbest),
    };
  });
}

/** Parse what was typed. @returns {Promise<Parsed[]>} One entry per text or sentence. */
export async function parse(model, body, signal) {
  const found = await call("/tag", { method: "POST", body: { model, ...body, marginals: true }, signal });
  const calibrated = found.calibrated !== false;
  return found.heads.map((heads, i) => {
    const tokens = found.tokens?.[i] ?? body.sentences[i].map(wordOf);
    const sentences = found.sentences?.[i] ?? (tokens.length > 0 ? [[0, tokens.length]] : []);
    const trees = sentences.map(([first, stop]) => ({
      first, tokens: tokens.slice(first, stop), heads: heads.slice(first, stop).map((head) => (head === 0 ? 0 : head - first)),
      relations: found.relations?.[i].slice(first, stop), marginals: calibrated ? found.marginals[i].slice(first, stop) : undefined,
    }));
    return { reference: `${found.model}:${found.version}`, tokens, trees, calibrated, probability: calibrated ? found.probabilities[i] : undefined };
  });
}

/** A token as it is shown: the first of its columns. */
function wordOf(token) {
  return Array.isArray(token) ? token[0] : token;
}

/** Offsets in UTF-16 units, as JavaScript counts, of offsets in characters. They differ after an emoji. */
function inUnits(text, offsets) {
  const units = [0];
  for (const character of text) units.push(units.at(-1) + character.length);
  return offsets.map(([begin, end]) => [units[begin], units[end]]);
}

/** Explain one token, or its arc. Tokens count within one text or sentence. */
export async function explain(reference, body, sentence, token) {
  const found = await call("/tag", { method: "POST", body: { model: reference, ...body, explain: [[sentence, token]] } });
  return found.explain?.[0] ?? found.arcs[0];
}

/** An example body as text to type: tokens in a line for a model that takes text, else below each other. */
export function typedOf(example, takesText) {
  if (example?.text) return [example.text].flat().join("\n");
  const sentences = example?.sentences ?? [];
  if (takesText) return sentences.map((tokens) => tokens.flat().join(" ")).join("\n");
  return sentences.map((sentence) => sentence.map((each) =>
    (Array.isArray(each) ? each.join("\t") : typeof each === "string" ? each : JSON.stringify(each))).join("\n")).join("\n\n");
}

/** The same call as curl, Python and command line. */
export function asCode(model, typed, takesText, parses) {
  const body = takesText ? { text: typed } : given(typed, false);
  const request = JSON.stringify({ model, ...body, ...(!parses && { output: "spans" }) });
  const input = takesText ? `text=${pythonOf(typed)}` : pythonOf(body.sentences);
  const python = parses
    ? `for sentence in client.parse(${pythonOf(model)}, ${input}):\n    print(sentence.tokens, sentence.heads, sentence.relations)`
    : takesText
    ? `for span in client.tag_text(${pythonOf(model)}, ${pythonOf(typed)}):\n    print(span.text, span.label, span.start, span.end)`
    : `print(client.tag(${pythonOf(model)}, ${pythonOf(body.sentences)}).tags)`;
  return {
    curl: `curl --fail-with-body ${location.origin}/tag -H 'Content-Type: application/json' \\\n  -d ${quoted(request)}`,
    Python: `from tagsmith import Client\n\nclient = Client(${pythonOf(location.origin)})\n${python}`,
    "Command line": `printf '%s\\n' ${quoted(typed)} | tagsmith tag ${model}`,
  };
}

/** Sequences of tags that give the same spans count as one. */
function distinct({ spans, probabilities }) {
  const found = new Map();
  spans.forEach((each, i) => {
    const name = each.map(spanKey).join("; ");
    const known = found.get(name);
    if (known) known.probability += probabilities[i];
    else found.set(name, { spans: each, probability: probabilities[i] });
  });
  return [...found.values()];
}

function sentencesOf(typed) {
  const sentences = typed.split(/\n[ \t]*\n/).map((block) =>
    block.split("\n").map((line) => line.trim()).filter(Boolean).map((line) =>
      (line.startsWith("{") ? objectOf(line) : line.split(/\s+/))));
  const filled = sentences.filter((each) => each.length > 0);
  const plain = filled.flat().every((columns) => Array.isArray(columns) && columns.length === 1);
  return plain ? filled.map((sentence) => sentence.flat()) : filled;
}

function objectOf(line) {
  try {
    return JSON.parse(line);
  } catch {
    throw new Error(`This is not a JSON object: ${line}`);
  }
}

function least(marginals, start, stop) {
  return marginals === undefined ? undefined : Math.min(...marginals.slice(start, stop));
}
