// How many sentences of a corpus two versions tag differently: what a promotion or a rollback would change.

import { at, call } from "../api.js";
import { fill, h } from "../dom.js";
import { differing, marked, spansOf } from "./spans.js";

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
  const changed = data.map((each, i) => ({ ...each, before: before.tags[i], after: after.tags[i] }))
    .filter((each) => each.before.join(" ") !== each.after.join(" "));
  fill(box, h("p", {}, h("strong", {}, `${changed.length} of ${data.length} sentences of the corpus would change.`)),
    changed.length > 0 && h("details", {}, h("summary", {}, "Show some"), ...changed.slice(0, SHOWN).map(sides)));
}

function sides({ tokens, before, after }) {
  const [old, now] = [spansOf(before), spansOf(after)];
  return h("div", { class: "sentences" },
    h("small", { class: "quiet" }, "now"), marked({ tokens, spans: differing(old, now) }),
    h("small", { class: "quiet" }, "then"), marked({ tokens, spans: differing(now, old) }));
}
