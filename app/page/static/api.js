// Calls of the API, with the key of this tab where keys are in force.

import { answer, byId } from "./dom.js";

const KEY = "tagsmith.key";
const EVENTS = "text/event-stream";
// Between two tries to take up a stream that broke off.
const AGAIN_MS = 3000;

/** What the server refused, or why it could not be reached. */
export class ApiError extends Error {
  constructor(status, problem) {
    const places = (problem.errors ?? []).map((each) => each.detail).filter((each) => each);
    super([problem.detail ?? problem.title ?? `The server answered ${status}.`, ...places].join(" "));
    this.status = status;
    this.code = problem.code;
  }
}

/** Call, and give the JSON of the answer. */
export async function call(path, { method = "GET", body, headers = {}, signal } = {}) {
  const given = body === undefined ? {} : { "Content-Type": "application/json" };
  const text = body === undefined ? undefined : JSON.stringify(body);
  const response = await admitted(path, { method, body: text, headers: { ...given, ...headers }, signal });
  return response.status === 204 ? null : response.json();
}

/** Follow the events of a job to its end, through lost connections. It calls `seen(type, data)` for each. */
export async function follow(jobId, signal, seen) {
  let last = "";
  for (;;) {
    try {
      const headers = last ? { Accept: EVENTS, "Last-Event-ID": last } : { Accept: EVENTS };
      const response = await admitted(`/jobs/${encodeURIComponent(jobId)}/events`, { headers, signal });
      if (response.status === 204) return;
      for await (const { id, type, data } of parsed(response.body)) {
        last = id || last;
        seen(type, JSON.parse(data));
      }
    } catch (error) {
      if (signal.aborted || (error instanceof ApiError && error.status === 404)) return;
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    if (signal.aborted) return;
  }
}

/** Let somebody give, change or forget the key. Resolves to whether there is another one now. */
export function askForKey(reason) {
  asking ??= asked(reason).finally(() => { asking = null; });
  return asking;
}

// The dialog that is open, and whether it was left without a key: then it is not opened again unasked.
let asking = null;
let declined = false;

async function admitted(path, options) {
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const response = await fetched(path, options, key);
    if (response.ok) return response;
    // Another key was given while this one was on its way: that one is yet to be tried.
    if (response.status === 401 && key !== sessionStorage.getItem(KEY)) continue;
    const problem = await response.json().catch(() => ({}));
    if (problem.code === "key_missing") problem.detail = "This server asks for a key.";
    const error = new ApiError(response.status, problem);
    if (response.status !== 401 || declined || !(await askForKey(error.message))) throw error;
  }
}

async function fetched(path, options, key) {
  const headers = key ? { ...options.headers, Authorization: `Bearer ${key}` } : options.headers;
  try {
    // "no-cache" asks whether it has changed since: most answers are then a 304 without a body.
    return await fetch(path, { cache: "no-cache", credentials: "omit", ...options, headers });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, { detail: "The server cannot be reached." });
  }
}

async function asked(reason) {
  const dialog = byId("key-dialog");
  const input = byId("key-input");
  byId("key-reason").textContent = reason;
  input.value = "";
  const chosen = await answer(dialog);
  const given = input.value.trim();
  input.value = "";
  if (chosen === "forget") sessionStorage.removeItem(KEY);
  const used = chosen === "use" && given !== "";
  if (used) sessionStorage.setItem(KEY, given);
  declined = !used;
  return used;
}

// Server-sent events by hand: the browser's own reader cannot send a key.
async function* parsed(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const event = { id: "", type: "message", data: "" };
      for (const line of frame.split("\n")) {
        const at = line.indexOf(": ");
        const name = line.slice(0, at);
        if (at > 0) event[name === "event" ? "type" : name] = line.slice(at + 2);
      }
      if (event.data) yield event;
    }
  }
}
