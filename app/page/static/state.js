// What several views read: models, corpora, trainers, presets, formats.

import { at, call, list } from "./api.js";

const DEFAULT_ALIAS = "champion";

let described = null;

/** The OpenAPI document of the server, read once. */
function openapi() {
  described ??= call("/openapi.json").catch((error) => { described = null; throw error; });
  return described;
}

/** @typedef {{ name: string, type: string, default: any, choices: string[], bounds: Record<string, number> }} TrainerField */
/** @typedef {{ kind: string, summary: string, description: string, fields: TrainerField[] }} TrainerInfo */

/** @returns {Promise<TrainerInfo[]>} */
export async function trainers() {
  return (await call("/trainers")).data;
}

/** @returns {Promise<{ name: string, summary: string }[]>} */
export async function presets() {
  return (await call("/presets")).data;
}

/** The formats that an upload can have. @returns {Promise<string[]>} */
export async function formats() {
  const { paths } = await openapi();
  const parameter = paths["/corpora"].post.parameters.find((each) => each.name === "format");
  return parameter?.schema.enum ?? parameter?.schema.anyOf?.find((each) => each.enum)?.enum ?? ["conll"];
}

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
 * What a version takes and gives. Versions from before signatures were kept have none: try text with them.
 * @returns {{ text: boolean, columns: string[], labels: string[], tokenizer?: any, example?: any }}
 */
export function signatureOf(version) {
  return version.signature ?? { text: true, columns: ["0"], labels: [] };
}
