// Train: corpus, preset, trainer; the rest folded; the same job as JSON, curl, Python and command line.

import { call } from "../api.js";
import { field, fill, h, select } from "../dom.js";
import { corpusName, number, pythonOf, quoted, referenceOf, seconds } from "../format.js";
import { noCorpus } from "../components/empty.js";
import { snippets } from "../components/snippets.js";
import { fault } from "../components/toast.js";
import { go, note } from "../router.js";
import { corpora, models, presets, trainers } from "../state.js";

const TYPING_MS = 300;
const NAME = "[a-z0-9][a-z0-9._\\-]{0,63}";
const DEFAULT = "sgd-l1";

/** @param {HTMLElement} box @param {import("../router.js").Address} address @param {AbortSignal} signal */
export async function show(box, { query }, signal) {
  const [found, known, kinds, sets] = await Promise.all([corpora(), models(), trainers(), presets()]);
  const usable = found.filter((each) => each.labels.length > 0 || each.trees);
  if (usable.length === 0) {
    fill(box, h("h1", {}, "Train"), noCorpus());
    return;
  }
  const chosen = usable.find((each) => [each.id, each.name, corpusName(each)].includes(query.get("corpus"))) ?? usable[0];
  const state = {
    corpus: chosen.id, model: query.get("model") ?? nameOf(chosen), preset: presetOf(chosen, sets),
    trainer: kinds.some((each) => each.kind === DEFAULT) ? DEFAULT : kinds[0].kind,
    dev: "0.1", promote: "", seed: "", cutoff: "", patience: "", fields: {},
  };
  // A first version is promoted, so that the name alone finds it; later ones wait for a decision.
  state.promote = known.some((each) => each.name === state.model && each.aliases.champion) ? "" : "champion";
  /** @type {Record<string, string>} Faults by JSON pointer. */
  let faults = {};
  let timer = null;
  let checking = new AbortController();

  const form = h("form", { class: "train-form", novalidate: true, onsubmit: start });
  const verdict = h("div", { class: "verdict", "aria-live": "polite" });
  const code = snippets("This job elsewhere", () => asCode(spec()));
  const submit = h("button", { type: "submit", class: "primary", "data-key": "start" }, "Start");
  fill(box, h("h1", {}, "Train"), h("div", { class: "sides" }, form,
    h("section", { class: "panel", "aria-label": "This job elsewhere" }, code.element)));
  drawForm();
  changed();

  function drawForm() {
    const opened = form.querySelector("details")?.open ?? false;
    const trainer = kinds.find((each) => each.kind === state.trainer);
    const corpus = usable.find((each) => each.id === state.corpus);
    fill(form,
      field("Corpus", select(usable.map((each) => [each.id, `${corpusName(each)} (${number(each.sentences)} sentences)`]),
        state.corpus, chooseCorpus), fieldFault("/corpus")),
      field("Model name", h("input", { value: state.model, pattern: NAME, required: true, autocomplete: "off", spellcheck: "false",
        maxlength: "64", oninput: (event) => set({ model: event.target.value }) }), { hint: "Small letters, digits, and - _ .", ...fieldFault("/model") }),
      field("Features", select(sets.filter((each) => each.trees === corpus.trees).map((each) => [each.name, each.name]), state.preset,
        (value) => { set({ preset: value }); drawForm(); }), { hint: sets.find((each) => each.name === state.preset)?.summary, ...fieldFault("/features") }),
      field("Trainer", select(kinds.map((each) => [each.kind, each.kind]), state.trainer,
        (value) => { set({ trainer: value, fields: {} }); drawForm(); }), { hint: plain(trainer?.summary), ...fieldFault("/trainer") }),
      h("details", { open: opened }, h("summary", {}, "More"), h("div", { class: "fields" },
        field("Dev set", select([["0.1", "10 % of the corpus"], ["0.2", "20 % of the corpus"], ["", "none"],
          ...usable.filter((each) => each.id !== state.corpus && each.trees === corpus.trees).map((each) => [each.id, corpusName(each)])],
        state.dev, (value) => set({ dev: value })), fieldFault("/dev")),
        text("Promote to alias", "promote", "Empty: no alias moves.", "/promote"),
        text("Stop after passes without a better score", "patience", "Empty: all passes.", "/stop/patience", "numeric"),
        text("Cutoff of rare features", "cutoff", "1 by default.", "/features/cutoff", "numeric"),
        text("Seed", "seed", "1 by default.", "/seed", "numeric"),
        ...(trainer?.fields ?? []).filter((each) => each.name !== "kind").filter(simple).map(trainerField))),
      verdict, h("div", { class: "buttons" }, submit));
  }

  /** The corpus of a training is not its dev set too. */
  function chooseCorpus(value) {
    const [before, next] = [state.corpus, value].map((id) => usable.find((each) => each.id === id));
    const other = before.trees !== next.trees;
    set({ corpus: value, ...(state.dev === value || (other && !Number(state.dev)) ? { dev: "0.1" } : {}),
      ...(other && { preset: presetOf(next, sets) }) });
    note({ corpus: value });
    drawForm();
  }

  function text(label, key, hint, pointer, inputmode = "text") {
    return field(label, h("input", { value: state[key], inputmode, autocomplete: "off", spellcheck: "false",
      oninput: (event) => set({ [key]: event.target.value.trim() }) }), { hint, ...fieldFault(pointer) });
  }

  function trainerField(each) {
    const change = (value) => set({ fields: { ...state.fields, [each.name]: value } });
    const given = state.fields[each.name] ?? "";
    const hint = `${each.default} by default.`;
    const control = each.choices.length > 0 ? select([["", String(each.default)], ...each.choices.filter((value) => value !== each.default).map((value) => [String(value), String(value)])], given, change)
      : h("input", { value: given, placeholder: String(each.default ?? ""), inputmode: "decimal", autocomplete: "off",
        oninput: (event) => change(event.target.value.trim()) });
    control.id = `trainer-${each.name}`;
    return field(each.name.replaceAll("_", " "), control, { hint: plain(hint), ...fieldFault(`/trainer/${each.name}`) });
  }

  function fieldFault(pointer) {
    const found = Object.entries(faults).find(([each]) => each === pointer || (pointer.split("/").length > 2 && each.startsWith(`${pointer}/`)));
    return found ? { fault: found[1] } : {};
  }

  function spec() {
    const named = (id) => referenceOf(usable.find((each) => each.id === id), found);
    const made = { kind: "train", model: state.model, corpus: named(state.corpus), features: { preset: state.preset }, trainer: { kind: state.trainer } };
    if (state.dev) made.dev = Number(state.dev) ? { fraction: Number(state.dev) } : { corpus: named(state.dev) };
    if (state.promote) made.promote = state.promote;
    if (state.patience) made.stop = { patience: asNumber(state.patience) };
    if (state.cutoff) made.features.cutoff = asNumber(state.cutoff);
    if (state.seed) made.seed = asNumber(state.seed);
    for (const [name, value] of Object.entries(state.fields)) if (value !== "") made.trainer[name] = asNumber(value);
    return made;
  }

  function set(changes) {
    Object.assign(state, changes);
    changed();
  }

  function changed() {
    code.update();
    clearTimeout(timer);
    timer = setTimeout(check, TYPING_MS);
  }

  async function check() {
    checking.abort();
    checking = new AbortController();
    const current = AbortSignal.any([signal, checking.signal]);
    try {
      const found = await call("/jobs/validate", { method: "POST", body: spec(), signal: current });
      clear();
      fill(verdict, estimate(found.estimate));
    } catch (error) {
      if (!current.aborted) refused(error);
    }
  }

  function clear() {
    if (Object.keys(faults).length > 0) redraw({});
  }

  /** Draw the form with faults, and leave the focus where it is. */
  function redraw(next) {
    faults = next;
    const { id, selectionStart } = document.activeElement ?? {};
    drawForm();
    const again = id ? form.querySelector(`#${CSS.escape(id)}`) : null;
    again?.focus();
    if (again && typeof selectionStart === "number") again.setSelectionRange(selectionStart, selectionStart);
  }

  function refused(error) {
    redraw(Object.fromEntries((error.places ?? []).filter((each) => each.pointer).map((each) => [each.pointer, each.detail])));
    fill(verdict, fault(error));
  }

  async function start(event) {
    event.preventDefault();
    submit.disabled = true;
    try {
      const job = await call("/jobs", { method: "POST", body: spec(), headers: { "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()).slice(2) } });
      clearTimeout(timer);
      go(["jobs", job.id]);
    } catch (error) {
      refused(error);
    }
    submit.disabled = false;
  }
}

function estimate(found) {
  const time = found.seconds === null ? "" : `, about ${seconds(found.seconds)} by the speed of earlier jobs`;
  return h("p", { class: "good" }, `Ready to start: ${number(found.tokens)} tokens over all passes${time}.`);
}

/** A model name from the name of a corpus. */
function nameOf(corpus) {
  const name = corpus.name.toLowerCase().replace(/[^a-z0-9._-]+/g, "-").replace(/[-._]?(train|training)$/, "").replace(/^[^a-z0-9]+/, "");
  return name.slice(0, 40) || "model";
}

/** The preset that suits a corpus: phrases or names for spans, classes of words otherwise. */
function presetOf(corpus, sets) {
  const spans = corpus.labels.some((each) => /^[BIESLUM]-./.test(each));
  const words = corpus.labels.length > 1 && corpus.labels.every((each) => /^[BIESLUMO]$/.test(each));
  const wanted = corpus.trees ? "parsing" : words ? "segmentation" : spans ? "ner" : "pos";
  return sets.some((each) => each.name === wanted) ? wanted : sets[0].name;
}

/** Whether a field fits one input. */
function simple(each) {
  return each.default !== null && typeof each.default !== "object" && each.default !== undefined;
}

function asNumber(text) {
  return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}

/** Documentation without its marks of code. */
function plain(text = "") {
  return text.replaceAll("`", "");
}

function asCode(spec) {
  const json = JSON.stringify(spec, null, 2);
  return {
    JSON: json,
    curl: `curl --fail-with-body ${location.origin}/jobs -H 'Content-Type: application/json' \\\n  -d ${quoted(JSON.stringify(spec))}`,
    Python: `from tagsmith import Client\n\nclient = Client(${pythonOf(location.origin)})\njob = client.train(${argumentsOf(spec)})\njob.watch()`,
    "Command line": `tagsmith train ${quoted(spec.corpus)} ${optionsOf(spec).join(" ")}`,
  };
}

/** The spec as options of `tagsmith train`: what has no option of its own is set by its path. */
function optionsOf(spec) {
  const { model, features: { preset, ...features }, trainer: { kind, ...trainer }, stop = {}, dev, promote, seed } = spec;
  const paths = Object.entries({ features, trainer, stop })
    .flatMap(([part, fields]) => Object.entries(fields).map(([name, value]) => [`${part}.${name}`, value]));
  if (promote && promote !== "champion") paths.push(["promote", promote]);
  return [`--model ${model}`, `--preset ${preset}`, `--trainer ${kind}`, dev && `--dev ${quoted(String(dev.corpus ?? dev.fraction))}`,
    promote === "champion" && "--promote", seed !== undefined && `--seed ${seed}`,
    ...paths.map(([path, value]) => `--set ${quoted(`${path}=${value}`)}`), "--watch"].filter(Boolean);
}

/** The spec as arguments of the Python client's `train`. */
function argumentsOf({ kind, model, corpus, dev, trainer, features: { preset, ...features }, ...others }) {
  const alone = Object.keys(trainer).length === 1;
  const named = { preset, trainer: alone ? trainer.kind : trainer, ...(dev ? { dev: dev.corpus ?? dev.fraction } : {}),
    ...(Object.keys(features).length > 0 ? { features } : {}), ...others };
  return [pythonOf(model), pythonOf(corpus), ...Object.entries(named).map(([name, value]) => `${name}=${pythonOf(value)}`)].join(", ");
}
