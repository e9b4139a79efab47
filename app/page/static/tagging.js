// The box to type in, and what a model makes of it.

import { call } from "./api.js";
import { byId, fault, fill, h, number } from "./dom.js";

// As many as the style sheet has.
const COLOURS = 10;
// A tag less probable than this is marked as unsure.
const UNSURE = 0.8;
const HINTS = {
  text: "A line is a sentence. For models that need nothing of a token but itself.",
  tokens: "A token a line, further columns behind a blank or tab, an empty line between sentences.",
};

// Types of spans get their colours in the order in which they first come up, and keep them.
const places = new Map();

/** Make the form work. */
export function start() {
  const form = byId("tag-form");
  byId("tag-kind").addEventListener("change", showHint);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    tag();
  });
  byId("tag-input").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  showHint();
}

/** Offer the models there are, and keep the choice. */
export function offer(models) {
  const select = byId("tag-model");
  const chosen = select.value;
  const references = models.flatMap((model) => [
    model.name, ...Object.keys(model.aliases).map((alias) => `${model.name}@${alias}`),
    ...(model.latest === null ? [] : [`${model.name}:${model.latest}`]),
  ]);
  if (/:\d+$/.test(chosen) && !references.includes(chosen)) references.push(chosen);
  const present = [...select.options].map((each) => each.value);
  if (references.join() === present.join()) return;
  fill(select, ...references.map((each) => h("option", { value: each, selected: each === chosen }, each)));
}

/** Choose a version to tag with, and go to the box. */
export function choose(reference) {
  const select = byId("tag-model");
  if (![...select.options].some((each) => each.value === reference)) {
    select.append(h("option", { value: reference }, reference));
  }
  select.value = reference;
  byId("tag-input").focus();
}

function showHint() {
  byId("tag-hint").textContent = HINTS[byId("tag-kind").value];
}

async function tag() {
  const [reference, kind, typed] = ["tag-model", "tag-kind", "tag-input"].map((id) => byId(id).value);
  const given = kind === "text" ? { text: typed } : { sentences: sentencesOf(typed) };
  const box = byId("tagged");
  try {
    const spans = await call("/tag", { method: "POST", body: { model: reference, output: "spans", ...given } });
    // By its number, so that both answers are of one version even if the alias moves in between.
    const model = `${spans.model}:${spans.version}`;
    const tags = await call("/tag", { method: "POST", body: { model, marginals: true, ...given } });
    fill(box, h("p", { class: "quiet" }, `by ${model}`), ...drawn(given, spans, tags));
  } catch (error) {
    fill(box, fault(error));
  }
}

function sentencesOf(typed) {
  const sentences = typed.split(/\n[ \t]*\n/).map((block) =>
    block.split("\n").map((line) => line.trim()).filter((line) => line).map((line) => line.split(/\s+/)));
  const filled = sentences.filter((each) => each.length > 0);
  const plain = filled.flat().every((columns) => columns.length === 1);
  return plain ? filled.map((sentence) => sentence.flat()) : filled;
}

function drawn(given, spans, tags) {
  // A model that cuts text into words: its tags say where they begin, which is better seen than read.
  if (spans.words) return spans.words.map((words) => h("p", { class: "sentence" }, ...words.map((word) => h("mark", {}, word))));
  const sentences = spans.tokens ?? given.sentences.map((sentence) =>
    sentence.map((token) => (Array.isArray(token) ? token[0] : token)));
  const probabilities = tags.probabilities ?? [];
  return sentences.map((tokens, i) => h("p", { class: "sentence" },
    ...chunks(tokens, tags.tags[i], tags.marginals?.[i] ?? [], spans.spans[i]),
    h("small", { class: "quiet" }, `probability of all these tags together: ${number(probabilities[i], 3)}`)));
}

function* chunks(tokens, tags, marginals, spans) {
  let at = 0;
  for (const span of [...spans, { start: tokens.length }]) {
    for (; at < span.start; at += 1) yield word(tokens[at], tags[at], marginals[at]);
    if (span.stop === undefined) return;
    const inside = [];
    for (; at < span.stop; at += 1) inside.push(word(tokens[at], tags[at], marginals[at]));
    yield h("mark", { class: `c${placeOf(span.type)}` }, h("b", {}, span.type), ...inside);
  }
}

function word(token, tagged, marginal) {
  const sure = marginal === undefined ? "" : `, probability ${number(marginal, 3)}`;
  return h("span", { class: marginal < UNSURE ? "token unsure" : "token", title: `${tagged}${sure}` },
    token, h("small", {}, tagged));
}

function placeOf(type) {
  if (!places.has(type)) places.set(type, places.size % COLOURS);
  return places.get(type);
}
