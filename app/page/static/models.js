// Models: their versions with scores, their aliases with history, and the way back.

import { call } from "./api.js";
import { answer, bytes, button, byId, fault, h, number, refill, row, scoreOf, seconds, table, time } from "./dom.js";

const path = (...parts) => `/models/${parts.map(encodeURIComponent).join("/")}`;

let models = [];
// The name of the model that is shown, undefined until one was chosen: then it is the newest.
let selected;
let onChange = () => {};
let onTag = () => {};

/** `changed(models)` is told whenever the list was read, `tag(reference)` when a version is to tag. */
export function start(changed, tag) {
  onChange = changed;
  onTag = tag;
}

/** Show another model. */
export async function select(name) {
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
      seconds(version.train_seconds),
      time(version.created_at),
      button("Tag", `tag ${name}:${version.version}`, () => onTag(`${name}:${version.version}`)));
  });
  const headings = ["version", "dev score, %", "trainer", "features", "size", "training", "made", ""];
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
      `back ${name}@${alias.alias} ${move.seq}`, () => goBack(name, alias, { to: move.seq }, `version ${move.to_version}`))));
  return h("section", { class: "alias" },
    h("h4", {}, `${alias.alias} → version ${alias.version} `,
      button("Roll back", `back ${name}@${alias.alias}`, () => goBack(name, alias, {}, "what it stood for before"))),
    h("div", { id: `said ${name}@${alias.alias}`, role: "status" }),
    table(`Moves of ${alias.alias}, newest first`, ["move", "", "version", "why", "who", "when", ""], rows));
}

async function goBack(name, alias, how, whither) {
  const reason = await confirmed(`Return ${alias.alias} of ${name} from version ${alias.version} to ${whither}?`);
  if (reason === null) return;
  let said;
  try {
    const moved = await call(`${path(name, "aliases", alias.alias)}/rollback`, {
      method: "POST",
      body: reason ? { ...how, reason } : how,
      // What was shown is what is undone: if somebody moved it meanwhile, nothing happens.
      headers: { "If-Match": `"${alias.seq}"` },
    });
    said = h("p", { class: "done" }, `${alias.alias} stands for version ${moved.version} again.`);
  } catch (error) {
    said = fault(error);
  }
  await refresh();
  byId(`said ${name}@${alias.alias}`)?.replaceChildren(said);
}

async function confirmed(question) {
  const reason = byId("back-reason");
  byId("back-question").textContent = question;
  const chosen = await answer(byId("back-dialog"), reason);
  return chosen === "go" ? reason.value.trim() : null;
}

function chip(text) {
  return h("span", { class: "chip" }, text);
}
