// Why a token has its label or its head: the weights for it, against the runner-up.

import { h } from "../dom.js";
import { number, percent } from "../format.js";
import { balance } from "./bars.js";

const SHOWN = 14;

/**
 * @param {string} token
 * @param {{ chosen: any, runner_up: any | null }} explained As `/tag` returns it.
 */
export function explanation(token, { chosen, runner_up: other }) {
  return h("div", { class: "explanation" },
    h("p", {}, "“", h("strong", {}, token), "” is ", h("strong", {}, chosen.tag), ` (${percent(chosen.probability)})`,
      other ? [", not ", h("strong", {}, other.tag), ` (${percent(other.probability)}).`] : "."),
    weights(chosen, other, chosen.tag, other?.tag));
}

/**
 * Why a word has its head, and its relation to it.
 * @param {string[]} tokens
 * @param {{ token: number, head: any, runner_up: any | null, relation: any | null, other_relation: any | null }} explained As `/tag` returns it.
 */
export function arcExplanation(tokens, { token, head: chosen, runner_up: other, relation, other_relation: second }) {
  const word = (number) => (number === 0 ? "the root" : `“${tokens[number - 1]}”`);
  return h("div", { class: "sides explanation" },
    h("div", {}, h("p", {}, "The head of “", h("strong", {}, tokens[token]), "” is ", h("strong", {}, word(chosen.head)), ` (${percent(chosen.probability)})`,
      other ? [", not ", h("strong", {}, word(other.head)), ` (${percent(other.probability)}).`] : "."),
    weights(chosen, other, word(chosen.head), other && word(other.head))),
    relation && h("div", {}, h("p", {}, "The relation is ", h("strong", {}, relation.relation), ` (${percent(relation.probability)})`,
      second ? [", not ", h("strong", {}, second.relation), ` (${percent(second.probability)}).`] : "."),
    weights(relation, second, relation.relation, second?.relation)));
}

/** Bars for and against what was chosen. */
function weights(chosen, other, name, otherName) {
  const rows = differences(chosen, other);
  const total = rows.reduce((sum, each) => sum + each.value, 0);
  const rest = rows.slice(SHOWN).reduce((sum, each) => sum + each.value, 0);
  return [h("p", { class: "quiet" }, other
    ? `Bars to the right speak for ${name}, bars to the left for ${otherName}. The sum is ${number(total, 2)}.`
    : "There is no other choice."),
  balance(`Weights for ${name}`, [
    ...rows.slice(0, SHOWN),
    ...(rows.length > SHOWN ? [{ name: `${rows.length - SHOWN} more`, value: rest }] : []),
  ])];
}

/** The weight of each feature for the chosen label minus that for the other one, largest first. */
function differences(chosen, other) {
  const sums = new Map();
  for (const [candidate, sign] of [[chosen, 1], [other, -1]]) {
    if (!candidate) continue;
    const add = (name, weight) => sums.set(name, (sums.get(name) ?? 0) + sign * weight);
    candidate.features.forEach((name, i) => add(name, candidate.weights[i]));
    if (!candidate.transitions) continue;
    const { before, after, features, weights: values } = candidate.transitions;
    values.forEach((weight, i) => {
      // A transition is one feature of the place, whatever label stands in it.
      const place = before[i] === candidate.tag ? `→ ${after[i]}` : `${before[i]} →`;
      add(features[i] === null ? place : `${place} & ${features[i]}`, weight);
    });
  }
  return [...sums].map(([name, value]) => ({ name, value })).filter((each) => each.value !== 0)
    .sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
}
