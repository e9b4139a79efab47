// From a file to a stored corpus: what was recognised is shown before anything is stored.

import { send } from "../api.js";
import { field, fill, h, select } from "../dom.js";
import { typesOf } from "../colours.js";
import { bytes, columnsOf, number } from "../format.js";
import { go } from "../router.js";
import { formats } from "../state.js";
import { opened } from "./dialog.js";
import { labelled } from "./spans.js";
import { facts } from "./table.js";
import { fault, toast } from "./toast.js";
import { tree } from "./tree.js";

// Of a larger file only the beginning is inspected.
const INSPECTED_BYTES = 4e6;
const SHOWN_SENTENCES = 3;
// Labels that are named before "and 3 more".
const SHOWN_LABELS = 12;

// Formats with dependency trees: the columns that parsers use, and the field that has labels otherwise.
const TREE_COLUMNS = { conllu: "form,lemma,upos,feats", conllx: "form,lemma,cpostag,postag,feats" };
const TAG_FIELDS = { conllu: "upos", conllx: "cpostag" };

/**
 * The name of a corpus that is uploaded from a file: without suffixes, as in tagsmith/client/files.py.
 * @param {string} file
 */
export function corpusName(file) {
  return file.replace(/(.)\.(gz|zst|xz|zip)$/i, "$1").replace(/(.)\.[^.]+$/, "$1");
}

/**
 * Inspect a file, let the user confirm, upload it, and go to the corpus.
 * @param {File} file
 */
export async function upload(file) {
  const name = corpusName(file.name);
  const options = { name, format: "auto" };
  const control = new AbortController();
  const choices = await formats();

  const findings = h("div", { class: "findings", "aria-live": "polite" });
  const bar = h("progress", { max: "1", value: 0, "aria-label": "Upload", hidden: true });
  const store = h("button", { type: "submit", value: "go", class: "primary" }, "Upload");
  const nameField = h("input", { id: "upload-name", autocomplete: "off", spellcheck: "false", required: true, maxlength: "200",
    value: name, oninput: (event) => { options.name = event.target.value; } });
  const dialog = h("dialog", { class: "wide", "aria-labelledby": "upload-title", onclose: () => control.abort() },
    h("form", { method: "dialog", onsubmit },
      h("h2", { id: "upload-title" }, "New corpus"),
      h("p", { class: "quiet" }, `${file.name}, ${bytes(file.size)}`),
      h("div", { class: "fields" }, field("Name", nameField),
        field("Format", select(choices, options.format, (format) => { options.format = format; inspect(); }, { id: "upload-format" }))),
      findings, bar,
      h("div", { class: "buttons" }, store, h("button", { type: "submit", value: "", formnovalidate: true }, "Cancel"))));

  const done = opened(dialog);
  inspect();
  await done;

  async function inspect() {
    fill(findings, h("p", { class: "quiet" }, "Reading the file …"));
    try {
      const [head, cut] = await beginning(file);
      const found = await send(`/corpora/inspect?${query(options)}`, head, undefined, control.signal);
      store.disabled = false;
      fill(findings, ...shown(found, cut, options, inspect));
    } catch (error) {
      if (control.signal.aborted) return;
      store.disabled = error.status === 422;
      fill(findings, fault(error));
    }
  }

  async function onsubmit(event) {
    if (event.submitter?.value !== "go") return;
    event.preventDefault();
    store.disabled = true;
    bar.hidden = false;
    try {
      const made = await send(`/corpora?${query(options)}`, file, (part) => { bar.value = part; }, control.signal);
      dialog.close();
      toast(`Stored ${made.name}: ${number(made.sentences)} sentences.`);
      go(["corpora", made.id]);
    } catch (error) {
      if (control.signal.aborted) return;
      bar.hidden = true;
      store.disabled = false;
      fill(findings, fault(error));
    }
  }
}

/** The sample corpus, through the same dialog as a file. */
export async function uploadSample() {
  const response = await fetch("/page/sample.conll");
  upload(new File([await response.blob()], "references.conll"));
}

/** What the server recognised. */
function shown(found, cut, options, inspect) {
  const types = typesOf(found.labels);
  const more = types.length - SHOWN_LABELS;
  const labels = types.slice(0, SHOWN_LABELS).join(", ") + (more > 0 ? ` and ${more} more` : "");
  const faults = found.report?.bio_fault_count ?? 0;
  const trees = Boolean(found.report?.trees);
  return [
    facts([
      ["Recognised as", found.format],
      ["Sentences", number(found.sentences)], ["Tokens", number(found.tokens)],
      ["Columns", columnsOf(found.columns)],
      ["Labels", trees ? "trees" : labels || "none"],
    ]),
    cut && h("p", { class: "quiet" }, `Counted in the first ${bytes(INSPECTED_BYTES)}.`),
    ...(found.warnings ?? []).map((text) => h("p", { class: "warning" }, text)),
    faults > 0 && check("Repair labels that break the coding", options.repair === "true",
      (on) => { options.repair = on ? "true" : undefined; inspect(); }),
    TREE_COLUMNS[found.format] && check("Read dependency trees (to train a parser)", trees, (on) => {
      Object.assign(options, on ? { label: "tree", columns: TREE_COLUMNS[found.format] } : { label: TAG_FIELDS[found.format], columns: undefined });
      inspect();
    }),
    found.format === "conll" && (found.columns.length > 1 || options.columns !== undefined)
      && check("Use the words only (the model then takes plain text)", options.columns === "0",
        (on) => { options.columns = on ? "0" : undefined; inspect(); }),
    h("div", { class: "sentences" }, ...(found.sample ?? []).slice(0, SHOWN_SENTENCES)
      .map((each) => (each.heads?.length > 0 ? tree(each) : labelled(each)))),
  ];
}

function check(text, checked, onchange) {
  return h("label", { class: "check" },
    h("input", { type: "checkbox", checked, onchange: (event) => onchange(event.target.checked) }), text);
}

function query(options) {
  return new URLSearchParams(Object.entries(options).filter(([, value]) => value !== undefined)).toString();
}

/** The file, or its beginning up to an empty line. @returns {Promise<[Blob, boolean]>} */
async function beginning(file) {
  const packed = /\.(gz|zst|xz|zip)$/i.test(file.name);
  if (file.size <= 4 * INSPECTED_BYTES || packed) return [file, false];
  const text = await file.slice(0, INSPECTED_BYTES).text();
  const end = Math.max(text.lastIndexOf("\n\n"), text.lastIndexOf("\n \n"));
  return end > 0 ? [new Blob([text.slice(0, end + 2)]), true] : [file, false];
}
