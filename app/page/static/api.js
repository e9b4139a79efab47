// Calls of the API, with the key of this tab where keys are in force.

import { askForKey } from "./components/key-dialog.js";

const EVENTS = "text/event-stream";
// Between two tries to take up a stream that broke off.
const AGAIN_MS = 1500;
const PAGE = 100;

/** What the server refused, or why it could not be reached. */
export class ApiError extends Error {
  /** @param {number} status @param {any} problem */
  constructor(status, problem) {
    const places = (problem.errors ?? []).map((each) => each.detail).filter((each) => each);
    super([problem.detail ?? problem.title ?? `The server answered ${status}.`, ...places].join(" "));
    this.status = status;
    this.code = problem.code;
    this.detail = problem.detail ?? this.message;
    /** @type {{ detail: string, pointer?: string, line?: number }[]} */
    this.places = problem.errors ?? [];
  }
}

/**
 * Call, and return the JSON of the response.
 * @param {string} path
 * @param {{ method?: string, body?: any, headers?: Record<string, string>, signal?: AbortSignal }} [options]
 * @returns {Promise<any>}
 */
export async function call(path, { method = "GET", body, headers = {}, signal } = {}) {
  const given = body === undefined ? {} : { "Content-Type": "application/json" };
  const text = body === undefined ? undefined : JSON.stringify(body);
  const response = await admitted(path, { method, body: text, headers: { ...given, ...headers }, signal });
  return response.status === 204 ? null : response.json();
}

/** Read a whole list, page by page, up to `most` entries. */
export async function list(path, { most = 500, signal } = {}) {
  const found = [];
  let cursor = null;
  do {
    const query = `limit=${PAGE}${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`;
    const page = await call(`${path}${path.includes("?") ? "&" : "?"}${query}`, { signal });
    found.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor !== null && found.length < most);
  return found;
}

/** Read a path of the API: segments are encoded. */
export function at(...segments) {
  return `/${segments.map((each) => encodeURIComponent(String(each))).join("/")}`;
}

/**
 * Send a file. XMLHttpRequest, because `fetch` does not report the progress of an upload.
 * @param {string} path
 * @param {Blob} body
 * @param {(fraction: number) => void} [progress]
 * @returns {Promise<any>}
 */
export function send(path, body, progress = () => {}, signal = undefined) {
  return retried((key) => new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    if (key) request.setRequestHeader("Authorization", `Bearer ${key}`);
    request.upload.onprogress = ({ loaded, total }) => progress(total ? loaded / total : 1);
    request.onerror = () => reject(unreachable());
    request.onabort = () => reject(new DOMException("Cancelled.", "AbortError"));
    request.onload = () => resolve({
      ok: request.status < 300, status: request.status, json: async () => JSON.parse(request.responseText),
    });
    signal?.addEventListener("abort", () => request.abort());
    request.send(body);
  })).then((response) => response.json());
}

/** Save what a path returns as a file. A link cannot send a key, so the page reads it first. */
export async function download(path, name) {
  const response = await admitted(path, {});
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Follow the events of a job from the first to the last, through lost connections. Calls `seen(type, data)`. */
export async function follow(jobId, signal, seen) {
  let last = "";
  for (;;) {
    try {
      const headers = last ? { Accept: EVENTS, "Last-Event-ID": last } : { Accept: EVENTS };
      const response = await admitted(`${at("jobs", jobId)}/events`, { headers, signal });
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

/** The key of this tab, kept until the tab is closed. */
export const key = {
  get: () => sessionStorage.getItem("tagsmith.key"),
  set: (value) => sessionStorage.setItem("tagsmith.key", value),
  forget: () => sessionStorage.removeItem("tagsmith.key"),
};

function admitted(path, options) {
  return retried((value) => fetched(path, options, value));
}

/** Ask for a key when there is none or a wrong one, and try again. */
async function retried(attempt) {
  for (;;) {
    const used = key.get();
    const response = await attempt(used);
    if (response.ok) return response;
    // Another key was given while this one was on its way: that one is yet to be tried.
    if (response.status === 401 && used !== key.get()) continue;
    const problem = await response.json().catch(() => ({}));
    if (problem.code === "key_missing") problem.detail = "This server asks for a key.";
    const error = new ApiError(response.status, problem);
    if (response.status !== 401 || !(await askForKey(error.message, key))) throw error;
  }
}

async function fetched(path, options, value) {
  const headers = value ? { ...options.headers, Authorization: `Bearer ${value}` } : options.headers;
  try {
    // "no-cache" asks whether it has changed since: most responses are then a 304 without a body.
    return await fetch(path, { cache: "no-cache", credentials: "omit", ...options, headers });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw unreachable();
  }
}

function unreachable() {
  return new ApiError(0, { detail: "The server cannot be reached." });
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
        const colon = line.indexOf(": ");
        const name = line.slice(0, colon);
        if (colon > 0) event[name === "event" ? "type" : name] = line.slice(colon + 2);
      }
      if (event.data) yield event;
    }
  }
}
