// Why a token has its label: the weights for it, against the runner-up.

import { h } from "../dom.js";
import { number, percent } from "../format.js";
import { balance } from "./bars.js";

const SHOWN = 14;

/**
 * @param {string} token
 * @param {{ chosen: any, runner_up: any | null }} explained As `/tag` returns it.
 */
export function explanation(token, { chosen, runner_up: other }) {
  const rows = differences(chosen, other);
  const total = rows.reduce((sum, each) => sum + each.value, 0);
  const rest = rows.slice(SHOWN).reduce((sum, each) => sum + each.value, 0);
  return h("div", { class: "explanation" },
    h("p", {}, "“", h("strong", {}, token), "” is ", h("strong", {}, chosen.tag), ` (${percent(chosen.probability)})`,
      other ? [", not ", h("strong", {}, other.tag), ` (${percent(other.probability)}).`] : "."),
    h("p", { class: "quiet" }, other
      ? `Bars to the right speak for ${chosen.tag}, bars to the left for ${other.tag}. The sum is ${number(total, 2)}.`
      : "Weights of the only label."),
    balance(`Weights for ${chosen.tag}`, [
      ...rows.slice(0, SHOWN),
      ...(rows.length > SHOWN ? [{ name: `${rows.length - SHOWN} more`, value: rest }] : []),
    ]));
}

/** The weight of each feature for the chosen label minus that for the other one, largest first. */
function differences(chosen, other) {
  const sums = new Map();
  for (const [candidate, sign] of [[chosen, 1], [other, -1]]) {
    if (!candidate) continue;
    const add = (name, weight) => sums.set(name, (sums.get(name) ?? 0) + sign * weight);
    candidate.features.forEach((name, i) => add(name, candidate.weights[i]));
    const { before, after, features, weights } = candidate.transitions;
    weights.forEach((weight, i) => {
      // A transition is one feature of the place, whatever label stands in it.
      const place = before[i] === candidate.tag ? `→ ${after[i]}` : `${before[i]} →`;
      add(features[i] === null ? place : `${place} & ${features[i]}`, weight);
    });
  }
  return [...sums].map(([name, value]) => ({ name, value })).filter((each) => each.value !== 0)
    .sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
}
