// Scores of versions: one per corpus, from dev sets and from evaluate jobs.

import { corpusName, scoreOf } from "./format.js";

export const DEV = "dev";

/** @typedef {{ corpus: string, name: string, score: number | undefined, metrics: any, types: any, at?: string }} Score */

/**
 * The scores of a version, newest first.
 * @param {any} version
 * @returns {Score[]}
 */
export function scoresOf(version) {
  const stored = (version.evaluations ?? []).map((each) => ({
    corpus: each.corpus ?? DEV, name: nameOf(each), score: each.score, metrics: each.metrics, types: each.types, at: each.at,
  }));
  const dev = version.metrics?.dev;
  if (stored.length > 0 || !dev) return stored;
  return [{ corpus: DEV, name: DEV, score: scoreOf(dev), metrics: dev, types: dev.by_type }];
}

/** The name of a scored corpus; a held-out part of the training corpus has none. */
function nameOf({ corpus_name: name, corpus_number: number, held_out: fraction }) {
  if (fraction) return `${Math.round(100 * fraction)} % held out`;
  return name ? corpusName({ name, number }) : DEV;
}

/** The corpora that any of these versions was scored on: [id, name]. */
export function scoredCorpora(versions) {
  const found = new Map();
  for (const version of versions) for (const each of scoresOf(version)) if (!found.has(each.corpus)) found.set(each.corpus, each.name);
  return [...found];
}

/** The score of a version on a corpus. */
export function scoreOn(version, corpus) {
  return scoresOf(version).find((each) => each.corpus === corpus)?.score;
}

/** The score to show where there is room for one: on dev, else the newest. */
export function mainScore(version) {
  return scoreOf(version.metrics?.dev) ?? scoresOf(version)[0]?.score;
}
