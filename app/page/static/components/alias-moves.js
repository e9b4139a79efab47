// Promote and roll back: what will change is said first, and nothing happens if somebody else was faster.

import { at, call } from "../api.js";
import { h } from "../dom.js";
import { number, signed } from "../format.js";
import { scoredCorpora, scoreOn } from "../evaluations.js";
import { changedSentences } from "./changed-sentences.js";
import { confirmed } from "./dialog.js";
import { toast } from "./toast.js";

const WHY = { maxlength: "1000", placeholder: "optional" };
const ALIAS = { value: "champion", required: true, pattern: "[a-z0-9][a-z0-9._\\-]{0,63}", title: "Small letters, digits, and - _ ." };
const MOVED = "The alias was moved meanwhile; nothing was changed. The page now shows where it points.";

/** @typedef {{ alias: string, version: number, seq: number, rollback_to: number | null }} Alias */

/** Ask, then point an alias of the user's choice at a version. Returns whether it moved. */
export async function promote(name, version, versions, aliases) {
  const champion = aliases.find((each) => each.alias === ALIAS.value);
  const given = await confirmed("Promote", [
    `Point an alias of ${name} at version ${version.version}.`, consequences(name, ALIAS.value, champion?.version, version, versions),
  ], { Alias: ALIAS, Reason: WHY });
  if (given === null) return false;
  const [chosen, reason] = given;
  return move(chosen, at("models", name, "aliases", chosen), {
    method: "PUT", body: { version: version.version, ...(reason && { reason }) },
    headers: asShown(aliases.find((each) => each.alias === chosen)),
  });
}

/** Ask, then roll an alias back: by one step, or to a move of its history. Returns whether it moved. */
export async function rollBack(name, alias, target, versions, toMove = undefined) {
  const given = await confirmed("Roll back", [
    `Return ${alias.alias} of ${name} from version ${alias.version} to version ${target}?`,
    consequences(name, alias.alias, alias.version, versions.find((each) => each.version === target), versions),
  ], { Reason: WHY });
  if (given === null) return false;
  const [reason] = given;
  return move(alias.alias, `${at("models", name, "aliases", alias.alias)}/rollback`, {
    method: "POST", body: { ...(toMove !== undefined && { to: toMove }), ...(reason && { reason }) }, headers: asShown(alias),
  });
}

/** What a move changes: the version, and its scores on each corpus. */
function consequences(name, alias, from, next, versions) {
  if (next === undefined) return null;
  const before = versions.find((each) => each.version === from);
  if (from === next.version) return h("p", { class: "quiet" }, `${name}@${alias} already points to version ${from}.`);
  const scores = scoredCorpora([next, ...(before ? [before] : [])]).map(([corpus, title]) => {
    const [old, now] = [before && scoreOn(before, corpus), scoreOn(next, corpus)];
    const change = typeof old === "number" && typeof now === "number" ? now - old : undefined;
    return h("li", {}, `${title}: ${number(old, 2)} → ${number(now, 2)}`,
      change !== undefined && h("b", { class: change < 0 ? "worse" : "better" }, ` ${signed(change)}`));
  });
  return h("div", { class: "consequences" },
    h("p", {}, h("strong", {}, `${name}@${alias}: ${from === undefined ? "new" : `v${from}`} → v${next.version}`)),
    h("ul", {}, ...scores),
    before && h("p", { class: "quiet" }, `${before.trainer?.kind ?? "import"} → ${next.trainer?.kind ?? "import"}; ${number(before.active_features)} → ${number(next.active_features)} features`),
    before && changedSentences(name, from, next.version, next.corpus));
}

// What was shown is what is changed: if somebody moved the alias, or made it, meanwhile, nothing happens.
function asShown(alias) {
  return alias === undefined ? { "If-None-Match": "*" } : { "If-Match": `"${alias.seq}"` };
}

async function move(alias, address, request) {
  try {
    const moved = await call(address, request);
    toast(`${alias} points to version ${moved.version} now.`);
    return true;
  } catch (error) {
    throw error.status === 412 ? new Error(MOVED) : error;
  }
}
