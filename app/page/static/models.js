// Models: their versions with scores, their aliases with history, the way forward and the way back.

import { call } from "./api.js";
import { bytes, button, byId, confirmed, fault, h, number, refill, row, say, scoreOf, table, time } from "./dom.js";

const path = (...parts) => `/models/${parts.map(encodeURIComponent).join("/")}`;

// Fields of dialogs.
const ALIAS = {
  value: "champion", required: true, maxlength: 64, pattern: "[a-z0-9][a-z0-9._\\-]*",
  title: "small letters, digits, dots, dashes and underlines",
};
const WHY = { maxlength: 1000 };
const MOVED = "Somebody moved this alias meanwhile, so nothing was changed. Below is how it stands now.";

let models = [];
// The name of the model that is shown, undefined until one was chosen: then it is the newest.
let selected;
let onChange = () => {};
let onTag = () => {};

/** Calls `changed(models)` whenever the list was read, and `tag(reference)` when a version is chosen for tagging. */
export function start(changed, tag) {
  onChange = changed;
  onTag = tag;
}

/** Show another model. */
export async function select(name) {
  if (name !== selected) say("model-said");
  selected = name;
  await refresh();
}

/** Read everything anew. */
export async function refresh() {
  models = (await call("/models?limit=200")).data;
  onChange(models);
  selected ??= models[0]?.name;
  drawList();
  const wanted = selected;
  if (wanted === undefined) return;
  try {
    const found = await read(wanted);
    if (wanted === selected) drawModel(wanted, found);
  } catch (error) {
    if (wanted === selected) refill(byId("model"), fault(error));
  }
}

async function read(name) {
  const [versions, aliases] = await Promise.all([
    call(`${path(name)}/versions?limit=50`),
    call(`${path(name)}/aliases`),
  ]);
  const histories = await Promise.all(
    aliases.data.map((each) => call(`${path(name, "aliases", each.alias)}/history?limit=20`)));
  return {
    versions: versions.data,
    more: versions.next_cursor !== null,
    aliases: aliases.data.map((alias, i) => ({ alias, moves: histories[i].data })),
  };
}

function drawList() {
  if (models.length === 0) {
    refill(byId("model-list"), h("p", { class: "quiet" },
      "None yet. Upload a corpus and post a train job: ", h("a", { href: "/docs" }, "API"), "."));
    return;
  }
  const rows = models.map((model) => row({ class: model.name === selected ? "selected" : "" },
    h("a", { href: `#model/${encodeURIComponent(model.name)}`, "data-key": `model ${model.name}`,
      "aria-current": model.name === selected && "true" }, model.name),
    model.latest === null ? "–" : number(model.latest),
    number(model.version_count),
    Object.entries(model.aliases).map(([alias, version]) => chip(`${alias} → ${version}`)),
    time(model.created_at)));
  refill(byId("model-list"),
    table("Models, newest first", ["name", "newest", "versions", "aliases", "since"], rows));
}

function drawModel(name, { versions, more, aliases }) {
  refill(byId("model"),
    h("h3", {}, name),
    drawVersions(name, versions, aliases),
    more && h("p", { class: "quiet" }, "The newest 50 versions."),
    aliases.length === 0 && h("p", { class: "quiet" }, "No alias: the newest version answers."),
    ...aliases.map(({ alias, moves }) => drawAlias(name, alias, moves)));
}

function drawVersions(name, versions, aliases) {
  const best = Math.max(...versions.map((each) => scoreOf(each.metrics.dev) ?? -Infinity));
  const rows = versions.map((version) => {
    const score = scoreOf(version.metrics.dev);
    const names = aliases.filter(({ alias }) => alias.version === version.version);
    return row({},
      h("span", {}, `${version.version} `, names.map(({ alias }) => chip(alias.alias))),
      h("span", { class: score === best && versions.length > 1 ? "best" : "" }, number(score, 2)),
      version.trainer.kind ?? "–",
      number(version.active_features),
      bytes(version.size_bytes),
      time(version.created_at),
      h("span", { class: "deeds" },
        button("Tag", `tag ${name}:${version.version}`, () => onTag(`${name}:${version.version}`)),
        button("Promote", `promote ${name}:${version.version}`, () => promote(name, version.version, aliases))));
  });
  const headings = ["version", "dev score, %", "trainer", "features", "size", "made", ""];
  return table(`Versions of ${name}, newest first`, headings, rows);
}

function drawAlias(name, alias, moves) {
  const rows = moves.map((move) => row({},
    number(move.seq),
    move.action,
    `${move.from_version ?? "nothing"} → ${move.to_version}`,
    move.reason ?? "–",
    move.actor ?? "–",
    time(move.at),
    move.to_version !== alias.version && button(`Back to ${move.to_version}`,
      `back ${name}@${alias.alias} ${move.seq}`, () => goBack(name, alias, { to: move.seq }, move.to_version))));
  return h("section", { class: "alias" },
    h("h4", {}, `${alias.alias} → version ${alias.version} `,
      alias.rollback_to !== null && button(`Roll back to ${alias.rollback_to}`,
        `back ${name}@${alias.alias}`, () => goBack(name, alias, {}, alias.rollback_to))),
    table(`Moves of ${alias.alias}, newest first`, ["move", "", "version", "why", "who", "when", ""], rows));
}

async function goBack(name, alias, how, version) {
  const given = await confirmed("Roll back",
    `Return ${alias.alias} of ${name} from version ${alias.version} to version ${version}?`, { Why: WHY });
  if (given === null) return;
  const [reason] = given;
  await move(alias.alias, `${path(name, "aliases", alias.alias)}/rollback`, {
    method: "POST",
    body: reason ? { ...how, reason } : how,
    headers: asShown(alias),
  });
}

async function promote(name, version, aliases) {
  const given = await confirmed("Promote", `Let an alias of ${name} stand for version ${version}.`,
    { Alias: ALIAS, Why: WHY });
  if (given === null) return;
  const [chosen, reason] = given;
  await move(chosen, path(name, "aliases", chosen), {
    method: "PUT",
    body: reason ? { version, reason } : { version },
    headers: asShown(aliases.find(({ alias }) => alias.alias === chosen)?.alias),
  });
}

// What was shown is what is changed: if somebody moved the alias, or made it, meanwhile, nothing happens.
function asShown(alias) {
  return alias === undefined ? { "If-None-Match": "*" } : { "If-Match": `"${alias.seq}"` };
}

async function move(alias, address, request) {
  say("model-said");
  try {
    const moved = await call(address, request);
    say("model-said", h("p", { class: "done" }, `${alias} stands for version ${moved.version} now.`));
  } catch (error) {
    say("model-said", fault(error.status === 412 ? new Error(MOVED) : error));
  }
  await refresh().catch(() => {});
}

function chip(text) {
  return h("span", { class: "chip" }, text);
}
