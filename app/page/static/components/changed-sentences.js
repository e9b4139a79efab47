// How many sentences of a corpus two versions tag differently: what a promotion or a rollback would change.

import { at, call } from "../api.js";
import { fill, h } from "../dom.js";
import { differing, marked, spansOf } from "./spans.js";
import { differences, tree } from "./tree.js";

// Enough for an impression, few enough for one request.
const SENTENCES = 100;
const SHOWN = 3;

/**
 * An element that fills itself.
 * @param {string} model
 * @param {number} from
 * @param {number} next
 * @param {string | null} corpus
 */
export function changedSentences(model, from, next, corpus) {
  const box = h("div", { class: "changed", "aria-live": "polite" });
  if (corpus !== null) count(box, model, [from, next], corpus).catch(() => fill(box));
  return box;
}

async function count(box, model, versions, corpus) {
  fill(box, h("p", { class: "quiet" }, "Tagging some sentences with both versions …"));
  const { data } = await call(`${at("corpora", corpus)}/sentences?limit=${SENTENCES}`);
  const sentences = data.map((each) => (each.columns?.[0]?.length > 1 ? each.columns : each.tokens));
  const [before, after] = await Promise.all(versions.map((version) =>
    call("/tag", { method: "POST", body: { model: `${model}:${version}`, sentences } })));
  if (!before.tags !== !after.tags) return fill(box, h("p", { class: "quiet" }, "One of the versions gives tags, the other trees."));
  const changed = data.map((each, i) => ({ ...each, before: of(before, i), after: of(after, i) }))
    .filter((each) => JSON.stringify(each.before) !== JSON.stringify(each.after));
  return fill(box, h("p", {}, h("strong", {}, `${changed.length} of ${data.length} sentences of the corpus would change.`)),
    changed.length > 0 && h("details", {}, h("summary", {}, "Show some"), ...changed.slice(0, SHOWN).map(sides)));
}

/** The tags of a sentence, or its tree. */
function of({ tags, heads, relations }, i) {
  return tags?.[i] ?? { heads: heads[i], relations: relations?.[i] };
}

function sides({ tokens, before, after }) {
  if (before.heads) {
    const [old, now] = [{ tokens, ...before }, { tokens, ...after }];
    return h("div", { class: "sentences" },
      h("small", { class: "quiet" }, "now"), tree({ ...old, differs: differences(old, now) }),
      h("small", { class: "quiet" }, "then"), tree({ ...now, differs: differences(now, old) }));
  }
  const [old, now] = [spansOf(before), spansOf(after)];
  return h("div", { class: "sentences" },
    h("small", { class: "quiet" }, "now"), marked({ tokens, spans: differing(old, now) }),
    h("small", { class: "quiet" }, "then"), marked({ tokens, spans: differing(now, old) }));
}
