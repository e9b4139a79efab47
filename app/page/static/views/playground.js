// Playground: text with its spans or trees, alternatives, explanations, two versions side by side.

import { button, field, fill, h, select } from "../dom.js";
import { number, percent } from "../format.js";
import { labelClass } from "../colours.js";
import { noModel } from "../components/empty.js";
import { arcExplanation, explanation } from "../components/explanation.js";
import { snippets } from "../components/snippets.js";
import { differing, marked } from "../components/spans.js";
import { fault } from "../components/toast.js";
import { differences, tree } from "../components/tree.js";
import { note, to } from "../router.js";
import { corpora, models, references, resolve, signatureOf } from "../state.js";
import * as tagging from "../tagging.js";

const TYPING_MS = 350;
const EXAMPLE = "Ada Lovelace wrote to Charles Babbage in London.";

/** @param {HTMLElement} box @param {import("../router.js").Address} address @param {AbortSignal} signal */
export async function show(box, { query }, signal) {
  const known = await models();
  const offered = references(known);
  if (offered.length === 0) {
    fill(box, h("h1", {}, "Playground"), noModel(await corpora()));
    return;
  }
  const wanted = query.get("model") ?? (await firstWithText(known, signal));
  const choices = offered.includes(wanted) ? offered : [wanted, ...offered];
  const state = { model: wanted, other: query.get("with") ?? "", typed: query.get("text") ?? "", takesText: true };
  const parsers = new Map();
  let timer = null;
  let running = new AbortController();
  let choosing = new AbortController();

  const input = h("textarea", { id: "text", rows: "4", spellcheck: "false", value: state.typed, oninput: () => {
    state.typed = input.value;
    note({ text: state.typed });
    clearTimeout(timer);
    timer = setTimeout(run, TYPING_MS);
  } });
  const hint = h("small", { class: "quiet", id: "text-hint" });
  const output = h("div", { class: "results", "aria-live": "polite" });
  const why = h("div", { class: "why" });
  const code = snippets("The same call elsewhere", () => tagging.asCode(state.model, state.typed, state.takesText, parsers.get(state.model)));
  input.setAttribute("aria-describedby", "text-hint");

  fill(box, h("h1", {}, "Playground"),
    h("div", { class: "fields" },
      field("Model", select(choices, state.model, (value) => { state.model = value; changed(); }, { id: "model" })),
      field("Compare with", select([["", "no other version"], ...choices], state.other,
        (value) => { state.other = value; note({ with: value }); run(); }, { id: "other" }))),
    h("div", { class: "field" }, h("label", { for: "text" }, "Text"), input, hint),
    output, why, h("details", { class: "panel" }, h("summary", {}, "Copy as curl, Python or command line"), code.element));
  await changed();

  async function changed() {
    note({ model: state.model });
    const before = state.example;
    choosing.abort();
    choosing = new AbortController();
    const { signal: current } = choosing;
    try {
      const version = await resolve(state.model, AbortSignal.any([signal, current]));
      const signature = signatureOf(version);
      parsers.set(state.model, signature.structure === "tree");
      state.takesText = signature.text;
      state.example = signature.example ? tagging.typedOf(signature.example, signature.text) : signature.text ? EXAMPLE : "";
      hint.textContent = signature.text ? "" : `${tokensOf(signature)}; an empty line between sentences.`;
    } catch (error) {
      if (!current.aborted) fill(output, fault(error));
      return;
    }
    // What was typed stays; an example gives way to that of the other model.
    if (state.typed === "" || state.typed === before) {
      state.typed = state.example;
      input.value = state.typed;
    }
    await run();
  }

  async function run() {
    running.abort();
    running = new AbortController();
    const { signal: current } = running;
    fill(why);
    if (state.typed.trim() === "") {
      fill(output, h("p", { class: "quiet" }, state.takesText ? "Type some text." : "Type some tokens, one per line."));
      return;
    }
    const { typed, takesText } = state;
    try {
      const request = tagging.given(typed, takesText);
      code.update();
      const results = await Promise.all([state.model, state.other].filter(Boolean)
        .map(async (reference) => ((await parses(reference, current)) ? tagging.parse : tagging.tag)(reference, request, current)));
      if (current.aborted || signal.aborted) return;
      draw(results, request, takesText ? typed.split("\n") : null);
    } catch (error) {
      if (!current.aborted) fill(output, fault(error));
    }
  }

  async function parses(reference, current) {
    if (!parsers.has(reference)) parsers.set(reference, signatureOf(await resolve(reference, current)).structure === "tree");
    return parsers.get(reference);
  }

  /** Show what was found. `typed` has the lines that were tagged; null for rows of tokens. */
  function draw(results, request, typed) {
    const [first, second] = results;
    const both = second !== undefined;
    if (results.some((each) => each[0]?.trees)) {
      fill(output, ...results.map((mine, side) => (mine[0]?.trees
        ? drawTrees(mine, results[1 - side], request) : h("section", { class: "panel tagged" }, h("h2", {}, mine[0]?.reference), ...mine.map(marked)))));
      return;
    }
    fill(output, h("div", { class: both ? "sides" : "" }, ...results.map((mine, side) => {
      const others = side === 0 ? second : first;
      const title = h("h2", {}, mine[0].reference);
      return h("section", { class: "panel tagged", "aria-label": `Tagged by ${mine[0].reference}` },
        title, ...lines(typed, mine.map((each, i) => marked({
          ...each, spans: both ? differing(each.spans, others[i]?.spans ?? []) : each.spans,
          onToken: each.words ? undefined : (token) => explain(each, request, i, token),
        }))), both && compared(mine, others), !mine[0].calibrated && h("p", { class: "quiet" },
          "This trainer gives no probabilities."), legend(mine), both ? null : alternatives(mine));
    })));
  }

  /** Show trees below each other: they are wide. `others` has those of another version, if any. */
  function drawTrees(mine, others, request) {
    const wrong = (each, i, k) => (others?.[i]?.trees?.[k] ? differences(each, others[i].trees[k]) : undefined);
    const drawn = mine.flatMap((each, i) => each.trees.map((one, k) => tree({
      ...one, differs: wrong(one, i, k), onToken: (token) => explain(each, request, i, one.first + token) })));
    const count = mine.flatMap((each, i) => each.trees.flatMap((one, k) => wrong(one, i, k) ?? [])).filter(Boolean).length;
    const sure = mine.length === 1 ? mine[0].probability : undefined;
    return h("section", { class: "panel tagged", "aria-label": `Parsed by ${mine[0].reference}` }, h("h2", {}, mine[0].reference), ...drawn,
      others?.[0]?.trees && h("p", { class: "quiet" }, count === 0 ? "Same trees as the other version."
        : `${count} ${count === 1 ? "word has" : "words have"} another head or relation in the other version (red).`),
      !mine[0].calibrated && h("p", { class: "quiet" }, "This trainer gives no probabilities."),
      h("p", { class: "quiet" }, "Choose a word or an arc to see why. Dotted arcs are less sure.",
        sure !== undefined && ` Probability of ${mine[0].trees.length === 1 ? "this tree" : "these trees"}: ${sure < 0.01 ? "below 1 %" : percent(sure)}.`));
  }

  async function explain(tagged, request, sentence, token) {
    fill(why, h("p", { class: "quiet" }, "Explaining …"));
    try {
      const found = await tagging.explain(tagged.reference, request, sentence, token);
      fill(why, h("section", { class: "panel", "aria-label": "Explanation" },
        h("div", { class: "row spread" }, h("h2", {}, "Why?"), button("Close", "close why", () => fill(why), { class: "small" })),
        found.head ? arcExplanation(tagged.tokens, found) : explanation(tagged.tokens[token], found)));
      why.scrollIntoView({ block: "nearest" });
    } catch (error) {
      fill(why, fault(error));
    }
  }
}

/** A champion that takes text, else any model that does, else the first. */
async function firstWithText(known, signal) {
  const offered = references(known).filter((each, i, all) =>
    all.findIndex((other) => other.split(/[@:]/)[0] === each.split(/[@:]/)[0]) === i);
  for (const reference of offered.slice(0, 10)) {
    const signature = signatureOf(await resolve(reference, signal));
    if (signature.text) return reference;
  }
  return offered[0];
}

/** What the tokens of a model are that does not take text. */
function tokensOf({ columns }) {
  return columns.length === 0 ? "One JSON object per token and line" : `One token per line, with the columns ${columns.join(", ")}`;
}

/** The tagged lines, with the empty lines between them. */
function lines(typed, drawn) {
  return typed?.map((line) => (line.trim() === "" ? h("div", { class: "marked" }, " ") : drawn.shift())) ?? drawn;
}

function compared(mine, others) {
  const count = mine.flatMap((each, i) => differing(each.spans, others[i]?.spans ?? [])).filter((each) => each.differs).length;
  return h("p", { class: "quiet" }, count === 0 ? "Same spans as the other version."
    : `${count} ${count === 1 ? "span differs" : "spans differ"} from the other version (outlined).`);
}

function legend(tagged) {
  const types = [...new Set(tagged.flatMap((each) => each.spans.map((span) => span.type)))].sort();
  if (types.length === 0) return h("p", { class: "quiet" }, "No span found.");
  if (tagged[0].words) return null;
  return h("p", { class: "legend", "aria-label": "Labels" }, ...types.map((type) =>
    h("span", { class: `key ${labelClass(type)}` }, h("i", { class: "swatch" }), type)),
  h("span", { class: "quiet" }, "Paler means less sure. Choose a word to see why."));
}

function alternatives(tagged) {
  const rows = tagged.flatMap((each) => each.alternatives.slice(1).map((other) => ({ each, other })))
    .filter(({ other }) => other.probability >= 0.0005).slice(0, 8);
  const best = tagged.length === 1 ? tagged[0].alternatives[0]?.probability : undefined;
  if (best === undefined && rows.length === 0) return null;
  return h("details", { class: "alternatives", open: rows.length > 0 },
    h("summary", {}, "Alternatives", best !== undefined && ` (this tagging: ${percent(best)})`),
    rows.length === 0 ? h("p", { class: "quiet" }, "None above 0.05 %.")
      : h("ol", {}, ...rows.map(({ each, other }) => h("li", {},
        h("b", { class: "right" }, `${number(100 * other.probability, 1)} %`), ...changes(each, other.spans)))));
}

/** What an alternative has instead: spans removed and added. */
function changes(tagged, spans) {
  const gone = differing(tagged.alternatives[0].spans, spans).filter((each) => each.differs);
  const come = differing(spans, tagged.alternatives[0].spans).filter((each) => each.differs);
  const show = (each, name) => h(name, { class: `chip ${labelClass(each.type)}` },
    textOf(tagged, each), h("b", {}, each.type));
  return [...come.map((each) => show(each, "ins")), gone.length > 0 && h("span", { class: "quiet" }, come.length ? "instead of" : "without"),
    ...gone.map((each) => show(each, "del"))];
}

/** The characters of a span as they were typed, or its tokens. */
function textOf({ text, offsets, tokens }, { start, stop }) {
  return text && offsets ? text.slice(offsets[start][0], offsets[stop - 1][1]) : tokens.slice(start, stop).join(" ");
}

/** The address of the playground with a model. */
export function playgroundOf(model, other) {
  return to(["playground"], { model, with: other });
}
