// Numbers, sizes, times and names as people read them.

import { h } from "./dom.js";

const ID_LENGTH = 6;

/** A number with `digits` decimals, or a dash. */
export function number(value, digits = 0) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A number for axes and tooltips: at most four significant decimals. */
export function compact(value) {
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3)) {
    return value.toLocaleString("en", { notation: Math.abs(value) < 1 ? "scientific" : "compact", maximumFractionDigits: 2 });
  }
  return value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 1 ? 4 : 2 });
}

/** A probability as a percentage. Only what is certain is 100 %. */
export function percent(value) {
  if (typeof value !== "number") return "";
  return value > 0.995 && value < 1 ? ">99 %" : `${number(100 * value)} %`;
}

/** A number with its sign. */
export function signed(value, digits = 2) {
  return typeof value === "number" ? `${value > 0 ? "+" : ""}${number(value, digits)}` : "–";
}

/** The probability of a test. */
export function pValue(value) {
  return typeof value === "number" && value < 0.0001 ? "<0.0001" : number(value, 4);
}

/** Columns by their names, if they have any: "2: word, pos". */
export function columnsOf(columns) {
  const named = columns.some((each, i) => each !== String(i));
  return named ? `${columns.length}: ${columns.join(", ")}` : String(columns.length);
}

export function bytes(value) {
  if (typeof value !== "number") return "–";
  if (value < 1e3) return `${value} B`;
  return value < 1e6 ? `${number(value / 1e3, 1)} kB` : `${number(value / 1e6, 1)} MB`;
}

export function seconds(value) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  if (value < 0.1) return `${number(1000 * value, value < 0.01 ? 1 : 0)} ms`;
  if (value < 100) return `${number(value, value < 10 ? 1 : 0)} s`;
  return value < 6000 ? `${number(value / 60)} min` : `${number(value / 3600, 1)} h`;
}

/** Date and time in the user's locale, with the exact time as its title. */
export function time(text) {
  if (!text) return "–";
  const shown = new Date(text).toLocaleString(undefined, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
  return h("time", { datetime: text, title: text }, shown);
}

/** "2 min ago", with the exact time as its title. */
export function ago(text) {
  if (!text) return "–";
  const past = (Date.now() - new Date(text).getTime()) / 1000;
  const [value, unit] = past < 60 ? [past, "second"] : past < 3600 ? [past / 60, "minute"]
    : past < 86400 ? [past / 3600, "hour"] : [past / 86400, "day"];
  if (unit === "day" && value > 6) return time(text);
  const shown = past < 5 ? "just now"
    : new Intl.RelativeTimeFormat("en", { numeric: "always" }).format(-Math.round(value), unit);
  return h("time", { datetime: text, title: new Date(text).toLocaleString() }, shown);
}

/** The last characters of an id, which identify it. */
export function shortId(id) {
  return id.slice(-ID_LENGTH);
}

/** The score that runs are compared by, in percent: F1 of spans, accuracy of tokens, or UAS of trees. */
export function scoreOf(metrics) {
  return metrics?.[metrics.score ?? "f1"] ?? metrics?.accuracy;
}

/** A metric as people write it. */
export function titleOfScore(name) {
  return { f1: "F1", uas: "UAS", las: "LAS" }[name] ?? name;
}

/** The name of that score. */
export function scoreName(metrics) {
  if (metrics?.score === "uas") return "UAS";
  return typeof metrics?.f1 === "number" && metrics.score !== "accuracy" ? "F1" : "accuracy";
}

/** The features of a spec by the name of their preset. */
export function featuresOf(spec) {
  const { preset, templates } = spec?.features ?? {};
  return preset ?? (templates ? "own templates" : "generic");
}

/** A corpus as `name:2`, or its name. */
export function corpusName(corpus) {
  return corpus.number > 1 ? `${corpus.name}:${corpus.number}` : corpus.name;
}

/** What stands for a corpus in a spec: its name if that means this upload, `name:2`, or its id if the name cannot. */
export function referenceOf(corpus, all) {
  if (/[:@]|^crp_/.test(corpus.name)) return corpus.id;
  const newest = all.every((each) => each.name !== corpus.name || each.number <= corpus.number);
  return newest ? corpus.name : `${corpus.name}:${corpus.number}`;
}

/** A value of JSON as Python writes it. */
export function pythonOf(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${pythonOf(each)}`).join(", ")}}`;
}

/** Quote for a POSIX shell. */
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
