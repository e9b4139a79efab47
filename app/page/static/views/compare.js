// Compare: any versions of any models: scores, curves, sizes.

import { at, call } from "../api.js";
import { button, fill, h, panel, select } from "../dom.js";
import { bytes, featuresOf, number, seconds } from "../format.js";
import { seriesClass } from "../colours.js";
import { chart } from "../components/chart.js";
import { curves, pointsOf } from "../components/curves.js";
import { noModel } from "../components/empty.js";
import { table } from "../components/table.js";
import { fault } from "../components/toast.js";
import { mainScore, scoredCorpora, scoreOn } from "../evaluations.js";
import { note, to } from "../router.js";
import { corpora, models, references, resolve } from "../state.js";

const MOST = 10;
// Shown at first: the newest versions of the newest model.
const FIRST = 3;

/** @param {HTMLElement} box @param {import("../router.js").Address} address @param {AbortSignal} signal */
export async function show(box, { query }, signal) {
  const known = await models();
  const offered = references(known).filter((each) => each.includes(":"));
  if (offered.length === 0) {
    fill(box, h("h1", {}, "Compare"), noModel(await corpora()));
    return;
  }
  let chosen = (query.get("versions") ?? "").split(",").filter(Boolean);
  if (chosen.length === 0) {
    const most = [...known].sort((a, b) => b.version_count - a.version_count)[0].name;
    chosen = offered.filter((each) => each.startsWith(`${most}:`)).slice(0, FIRST);
  }
  const [chips, body] = [h("div", { class: "row" }), h("div")];
  fill(box, h("h1", {}, "Compare"), chips, body);
  await draw();

  async function draw() {
    note({ versions: chosen.join(",") });
    fill(chips, ...chosen.map((each, i) => h("span", { class: `chip ${seriesClass(i)}` }, h("i", { class: "swatch" }), each,
      button("×", `remove ${each}`, () => { chosen = chosen.filter((other) => other !== each); draw(); }, { "aria-label": `Remove ${each}`, class: "plain" }))),
    chosen.length < MOST && select([["", "Add a version …"], ...offered.filter((each) => !chosen.includes(each))], "",
      (value) => { chosen = [...chosen, value]; draw(); }, { "aria-label": "Add a version" }));
    try {
      const found = await Promise.all(chosen.map((each) => resolve(each, signal)));
      const runs = await Promise.all(found.map(readRun));
      if (!signal.aborted) fill(body, ...(found.length === 0 ? [h("p", { class: "quiet" }, "Add versions to compare them.")] : drawn(found, runs)));
    } catch (error) {
      if (!signal.aborted) fill(body, fault(error));
    }
  }

  async function readRun(version) {
    const job = version.job_id && (await call(at("jobs", version.job_id), { signal }).catch(() => null));
    const result = job?.result?.trained ?? job?.result;
    return { name: reference(version), points: pointsOf(result?.curve) };
  }
}

function drawn(found, runs) {
  const scored = scoredCorpora(found);
  const best = new Map(scored.map(([corpus]) => [corpus, Math.max(...found.map((each) => scoreOn(each, corpus) ?? -1))]));
  const curve = curves();
  curve.update(runs);
  const sizes = chart({ title: "Score against size", x: "active features", y: "score", logX: true, fromZero: false, most: 100 });
  const points = found.map((each, i) => ({ name: reference(each), colour: seriesClass(i), scatter: true,
    points: typeof mainScore(each) === "number" ? [[each.active_features, mainScore(each)]] : [] })).filter((each) => each.points.length > 0);
  sizes.update(points);
  return [
    panel("Scores", table("Scores of versions", [
      { name: "Version", show: (each) => h("a", { href: to(["models", each.model], { version: String(each.version) }) }, reference(each)), value: reference },
      ...scored.map(([corpus, title]) => ({ name: title, right: true, value: (each) => scoreOn(each, corpus), show: (each) => {
        const score = scoreOn(each, corpus);
        return score !== undefined && score === best.get(corpus) ? h("strong", {}, number(score, 2)) : number(score, 2);
      } })),
      { name: "Trainer", show: (each) => each.trainer?.kind ?? "–", value: (each) => each.trainer?.kind },
      { name: "Features", show: (each) => featuresOf(each.spec), value: (each) => featuresOf(each.spec) },
      { name: "Active", right: true, show: (each) => number(each.active_features), value: (each) => each.active_features },
      { name: "Size", right: true, show: (each) => bytes(each.size_bytes), value: (each) => each.size_bytes },
      { name: "Training", right: true, show: (each) => seconds(each.train_seconds), value: (each) => each.train_seconds },
    ], found)),
    runs.some((each) => each.points.length > 0) && panel("Learning curves", curve.element),
    points.length > 1 && panel("Size", sizes.element, h("div", { class: "legend" }, ...points.map((each) =>
      h("span", { class: `key ${each.colour}` }, h("i", { class: "swatch" }), each.name)))),
  ];
}

function reference(version) {
  return `${version.model}:${version.version}`;
}
