// What several views read: models, corpora, trainers, presets, and which calls this server has.

import { at, call, list } from "./api.js";

const DEFAULT_ALIAS = "champion";

let described = null;

/** The OpenAPI document of the server, read once. */
function openapi() {
  described ??= call("/openapi.json").catch((error) => { described = null; throw error; });
  return described;
}

/**
 * Whether the server has a call, and a query parameter of it.
 * @param {string} method
 * @param {RegExp} path
 * @param {string} [parameter]
 */
export async function offers(method, path, parameter) {
  const { paths } = await openapi();
  const found = Object.entries(paths).find(([each, calls]) => path.test(each) && method in calls)?.[1][method];
  if (found === undefined) return false;
  return parameter === undefined || (found.parameters ?? []).some((each) => each.name === parameter);
}

/** @typedef {{ name: string, type: string, default: any, description: string, choices?: any[] | null, minimum?: number | null, maximum?: number | null }} TrainerField */
/** @typedef {{ kind: string, summary: string, fields: TrainerField[] }} TrainerInfo */

/** @returns {Promise<TrainerInfo[]>} */
export async function trainers() {
  if (await offers("get", /^\/trainers$/)) {
    const found = await call("/trainers");
    return Array.isArray(found) ? found : found.data;
  }
  const { components: { schemas } } = await openapi();
  const { mapping } = schemas.TrainSpec.properties.trainer.discriminator;
  return Object.entries(mapping).map(([kind, reference]) => {
    const schema = schemas[reference.split("/").at(-1)];
    const fields = Object.entries(schema.properties).filter(([name]) => name !== "kind").map(([name, each]) => ({
      name, type: each.type ?? "object", default: each.default, description: each.description ?? "",
      choices: each.enum, minimum: each.minimum, maximum: each.maximum,
    }));
    return { kind, summary: "", fields };
  });
}

/** @returns {Promise<{ name: string, summary: string }[]>} */
export async function presets() {
  if (await offers("get", /^\/presets$/)) {
    const found = await call("/presets");
    return Array.isArray(found) ? found : found.data;
  }
  const { components: { schemas } } = await openapi();
  const names = schemas.FeatureSpec.properties.preset.anyOf.find((each) => each.enum)?.enum ?? [];
  return names.map((name) => ({ name, summary: SUMMARIES[name] ?? "" }));
}

/** The formats that an upload can have. @returns {Promise<string[]>} */
export async function formats() {
  const { paths } = await openapi();
  const parameter = paths["/corpora"].post.parameters.find((each) => each.name === "format");
  return parameter?.schema.enum ?? parameter?.schema.anyOf?.find((each) => each.enum)?.enum ?? ["conll"];
}

const SUMMARIES = {
  generic: "Words, affixes and shapes: a start for any task.",
  ner: "Names of people, places and things.",
  chunking: "Phrases, when parts of speech are given.",
  pos: "Parts of speech.",
  segmentation: "Words of text without spaces.",
};

/** All models, newest first. */
export function models() {
  return list("/models");
}

/** All corpora, newest first. */
export function corpora() {
  return list("/corpora");
}

/** The versions of a model, newest first. */
export function versions(name, signal) {
  return list(`${at("models", name)}/versions`, { signal });
}

/** References that models can be called by: `name@alias`, then `name:version`. */
export function references(found) {
  return found.filter((model) => model.latest !== null).flatMap((model) => [
    ...Object.keys(model.aliases).map((alias) => `${model.name}@${alias}`),
    ...recent(model).map((version) => `${model.name}:${version}`),
  ]);
}

function recent(model) {
  const newest = Array.from({ length: Math.min(model.latest, 10) }, (_, i) => model.latest - i);
  return [...new Set([...newest, ...Object.values(model.aliases)])];
}

/** The version that a reference (`name`, `name@alias`, `name:3`) points to now. */
export async function resolve(reference, signal) {
  const [, name, alias, number] = /^([^@:]+)(?:@(.+)|:(\d+))?$/.exec(reference) ?? [null, reference];
  if (number !== undefined) return call(at("models", name, "versions", number), { signal });
  const model = await call(at("models", name), { signal });
  const version = model.aliases[alias ?? DEFAULT_ALIAS] ?? model.latest;
  return call(at("models", name, "versions", version), { signal });
}

/**
 * What a version takes: text or rows of columns, and an example.
 * @returns {Promise<{ text: boolean, columns: string[], labels: string[], tokenizer?: any, example?: any }>}
 */
export async function signatureOf(version, signal) {
  if (version.signature) return version.signature;
  // A server that does not say: a model of one column takes text.
  const corpus = version.corpus === null ? null
    : await call(at("corpora", version.corpus), { signal }).catch(() => null);
  const columns = corpus?.columns ?? ["0"];
  return { text: columns.length === 1, columns, labels: corpus?.labels ?? [] };
}
