// One model: versions with their scores, aliases with their history, what the chosen version takes and has learned.

import { at, call, download, list } from "../api.js";
import { action, button, fill, h, panel, refill, select } from "../dom.js";
import { typesOf } from "../colours.js";
import { bytes, columnsOf, number, seconds, time } from "../format.js";
import { promote, rollBack } from "../components/alias-moves.js";
import { bars } from "../components/bars.js";
import { confirmed } from "../components/dialog.js";
import { typesTable } from "../components/job-result.js";
import { facts, table } from "../components/table.js";
import { fault, toast } from "../components/toast.js";
import { scoredCorpora, scoreOn, scoresOf } from "../evaluations.js";
import { note, to } from "../router.js";
import { signatureOf, versions as readVersions } from "../state.js";

const TEMPLATES = 20;

/** @param {HTMLElement} box @param {import("../router.js").Address} address @param {AbortSignal} signal */
export async function show(box, { path: [, name], query }, signal) {
  const [said, body, detail] = [h("div", { id: "model-said" }), h("div"), h("div")];
  let chosen = Number(query.get("version")) || null;
  fill(box, body);
  await read();

  async function read() {
    const path = at("models", name);
    const [versions, found] = await Promise.all([readVersions(name, signal), call(`${path}/aliases`, { signal })]);
    const aliases = await Promise.all(found.data.map(async (alias) => ({
      ...alias, moves: await list(`${path}/aliases/${encodeURIComponent(alias.alias)}/history`, { most: 100, signal }) })));
    if (!versions.some((each) => each.version === chosen)) chosen = (aliases[0]?.version ?? versions[0]?.version) ?? null;
    const kept = detail.dataset.version;
    refill(body,
      h("div", { class: "row spread" }, h("h1", {}, name),
        versions.length > 0 && action("Try it", to(["playground"], { model: aliases.length ? `${name}@${aliases[0].alias}` : `${name}:${versions[0].version}` }), { class: "button primary" })),
      said,
      versions.length === 0 ? h("p", { class: "quiet" }, "All versions were deleted.") : panel("Versions", versionTable(versions, aliases), diffForm(versions)),
      ...aliases.map((alias) => history(alias, versions)), detail);
    if (chosen !== null && kept !== String(chosen)) await drawDetail(versions);
  }

  function act(work) {
    fill(said);
    return work().catch((error) => fill(said, fault(error))).then(() => read()).catch(() => {});
  }

  function versionTable(versions, aliases) {
    const corpora = scoredCorpora(versions);
    return table(`Versions of ${name}, newest first`, [
      { name: "Version", show: (each) => h("span", { class: "row tight" },
        button(`v${each.version}`, `show ${each.version}`, () => choose(each.version, versions), { class: "link", "aria-pressed": String(each.version === chosen) }),
        ...aliases.filter((alias) => alias.version === each.version).map((alias) => h("span", { class: "badge" }, alias.alias))),
      value: (each) => each.version },
      ...corpora.map(([corpus, title]) => ({ name: title, right: true, show: (each) => number(scoreOn(each, corpus), 2), value: (each) => scoreOn(each, corpus) })),
      { name: "Trainer", show: (each) => each.trainer?.kind ?? "–", value: (each) => each.trainer?.kind },
      { name: "Features", right: true, show: (each) => number(each.active_features), value: (each) => each.active_features },
      { name: "Size", right: true, show: (each) => bytes(each.size_bytes), value: (each) => each.size_bytes },
      { name: "Created", show: (each) => time(each.created_at), value: (each) => each.created_at },
      { name: "", show: (each) => h("span", { class: "row tight" },
        action("Try", to(["playground"], { model: `${name}:${each.version}` }), { class: "button small" }),
        button("Promote", `promote ${name}:${each.version}`, () => act(() => promote(name, each, versions, aliases)), { class: "small" })) },
    ], versions, { rowClass: (each) => (each.version === chosen ? "best" : "") });
  }

  function diffForm(versions) {
    if (versions.length < 2) return null;
    const options = versions.map((each) => [String(each.version), `v${each.version}`]);
    const base = select(options, options[1][0], () => {}, { id: "diff-base" });
    const head = select(options, options[0][0], () => {}, { id: "diff-head" });
    return h("div", { class: "row between" }, h("label", { class: "inline" }, "Difference of ", base), h("label", { class: "inline" }, "and ", head),
      button("Show difference", "diff", () => { location.hash = to(["models", name, "diff", base.value, head.value]); }));
  }

  function history(alias, versions) {
    return h("section", { class: "panel alias" },
      h("div", { class: "row spread" }, h("h2", {}, `${alias.alias} → v${alias.version}`),
        alias.rollback_to !== null && button(`Roll back to v${alias.rollback_to}`, `back ${name}@${alias.alias}`,
          () => act(() => rollBack(name, alias, alias.rollback_to, versions)))),
      h("ol", { class: "timeline" }, ...alias.moves.map((move) => h("li", { class: move.action },
        h("div", { class: "row spread" },
          h("span", {}, h("strong", {}, `${move.from_version === null ? "" : `v${move.from_version} `}→ v${move.to_version}`), ` ${move.action}`,
            move.reason && h("q", {}, move.reason)),
          move.to_version !== alias.version && versions.some((each) => each.version === move.to_version)
            && button(`Back to v${move.to_version}`, `back ${name}@${alias.alias} ${move.seq}`,
              () => act(() => rollBack(name, alias, move.to_version, versions, move.seq)), { class: "small" })),
        h("small", { class: "quiet" }, time(move.at), ` by ${move.actor ?? "someone"}`, move.forced && ` · forced: ${move.forced}`)))));
  }

  function choose(version, versions) {
    chosen = version;
    note({ version: String(version) });
    drawDetail(versions).then(() => detail.scrollIntoView({ block: "nearest" }));
    for (const row of body.querySelectorAll("[data-key^='show ']")) {
      row.setAttribute("aria-pressed", String(row.dataset.key === `show ${version}`));
      row.closest("tr").classList.toggle("best", row.dataset.key === `show ${version}`);
    }
  }

  async function drawDetail(versions) {
    const version = versions.find((each) => each.version === chosen);
    detail.dataset.version = String(chosen);
    const path = `${at("models", name)}/versions/${chosen}`;
    const signature = signatureOf(version);
    const templates = await call(`${path}/templates`, { signal }).catch(() => null);
    if (signal.aborted || detail.dataset.version !== String(version.version)) return;
    const [first] = scoresOf(version);
    fill(detail, h("h2", { class: "section" }, `Version ${version.version}`), h("div", { class: "sides" },
      panel("Takes and gives", facts([
        ["Input", signature.text ? "text, or tokens" : `tokens with columns (${columnsOf(signature.columns)})`],
        signature.tokenizer && ["Tokenizer", typeof signature.tokenizer === "string" ? signature.tokenizer : signature.tokenizer.pattern ?? signature.tokenizer.kind],
        signature.structure === "tree" ? ["Relations", signature.labels.join(", ") || "none"] : ["Labels", typesOf(signature.labels).join(", ") || "–"],
        version.corpus && ["Trained on", h("a", { href: to(["corpora", version.corpus]) }, version.corpus_name ?? "its corpus")],
        version.job_id && ["Trained by", h("a", { href: to(["jobs", version.job_id]) }, "its job")],
        ["Training", seconds(version.train_seconds)], ["Objective", number(version.objective, 2)], ["Seed", number(version.seed)],
      ]), h("div", { class: "row" },
        button("Download the model", "artifact", () => act(() => download(`${path}/artifact`, `${name}-${version.version}.model`)), { class: "small" }),
        button("Delete this version", "delete version", () => act(() => remove(path, version)), { class: "small" }))),
      first?.types && panel(`Scores by ${first.metrics?.score === "uas" ? "relation" : "type"} on ${first.name}`, typesTable(first.types, first.metrics?.score === "uas"))),
    templates && templates.data.length > 0 && panel("Templates that matter", matter(templates.data)));
  }

  async function remove(path, version) {
    if ((await confirmed("Delete", [`Delete version ${version.version} of ${name}?`], {}, { danger: true })) === null) return;
    await call(path, { method: "DELETE" });
    toast(`Version ${version.version} is deleted.`);
  }
}

function matter(templates) {
  const kept = templates.filter((each) => each.kept).sort((a, b) => b.norm - a.norm);
  const dropped = templates.length - kept.length;
  return h("div", {},
    h("p", { class: "quiet" }, "Norm of the weights of each template."),
    bars("Templates by norm", kept.slice(0, TEMPLATES).map((each) => ({ name: h("code", {}, each.name), value: each.norm,
      text: number(each.norm, 2), title: `${number(each.active_features)} features, ${bytes(each.size_bytes)}` }))),
    kept.length > TEMPLATES && h("p", { class: "quiet" }, `and ${kept.length - TEMPLATES} weaker ones`),
    dropped > 0 && h("p", { class: "quiet" }, `${dropped} templates have no weights.`));
}
