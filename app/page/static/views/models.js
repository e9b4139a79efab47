// Models: the list.

import { fill, h } from "../dom.js";
import { ago, number } from "../format.js";
import { noModel } from "../components/empty.js";
import { table } from "../components/table.js";
import { mainScore } from "../evaluations.js";
import { to } from "../router.js";
import { corpora, models, resolve } from "../state.js";

/** @param {HTMLElement} box @param {import("../router.js").Address} _ @param {AbortSignal} signal */
export async function show(box, _, signal) {
  const found = await models();
  if (found.length === 0) {
    fill(box, h("h1", {}, "Models"), noModel(await corpora()));
    return;
  }
  const served = new Map(await Promise.all(found.slice(0, 50).filter((each) => each.latest !== null).map(async (each) =>
    /** @type {[string, any]} */ ([each.name, await resolve(each.name, signal)]))));
  const score = (each) => (served.has(each.name) ? mainScore(served.get(each.name)) : undefined);
  fill(box, h("h1", {}, "Models"), table("Models, newest first", [
    { name: "Model", show: (each) => h("a", { href: to(["models", each.name]) }, each.name), value: (each) => each.name },
    { name: "Serves", show: (each) => aliases(each) },
    { name: "Dev score", right: true, show: (each) => number(score(each), 2), value: score },
    { name: "Versions", right: true, show: (each) => number(each.version_count), value: (each) => each.version_count },
    { name: "Newest", right: true, show: (each) => (each.latest === null ? "–" : `v${each.latest}`), value: (each) => each.latest },
    { name: "Trainer", show: (each) => served.get(each.name)?.trainer?.kind ?? "–" },
    { name: "Created", show: (each) => ago(each.created_at), value: (each) => each.created_at },
  ], found));
}

function aliases(model) {
  const entries = Object.entries(model.aliases);
  if (entries.length === 0) return h("span", { class: "quiet" }, "newest version");
  return h("span", { class: "row" }, ...entries.map(([alias, version]) => h("span", { class: "badge" }, `${alias} v${version}`)));
}
