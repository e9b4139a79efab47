// Brings the parts together: what is shown, by the address, and when it is read again.

import { askForKey, call } from "./api.js";
import { byId } from "./dom.js";
import * as jobs from "./jobs.js";
import * as models from "./models.js";
import * as tagging from "./tagging.js";

// While a job runs the list changes by itself; else only when somebody else does something.
const BUSY_MS = 2000;
const IDLE_MS = 6000;

let timer = null;

async function refresh() {
  clearTimeout(timer);
  try {
    await Promise.all([models.refresh(), jobs.refresh()]);
    notice("");
  } catch (error) {
    notice(error.message);
  }
  clearTimeout(timer);
  timer = setTimeout(next, jobs.underWay() ? BUSY_MS : IDLE_MS);
}

function next() {
  // A page that nobody looks at asks for nothing; it is read again when it is seen.
  if (!document.hidden) refresh();
}

function notice(text) {
  const box = byId("notice");
  if (box.textContent !== text) box.textContent = text;
  box.hidden = text === "";
}

/** Read "#model/name" or "#job/id" of the address. */
function shown() {
  const [, kind, name] = /^#(model|job)\/(.+)$/.exec(location.hash) ?? [];
  return kind === undefined ? {} : { [kind]: decoded(name) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function go() {
  const { model, job } = shown();
  try {
    if (model !== undefined) await models.select(model);
    if (job !== undefined) await jobs.select(job);
  } catch (error) {
    notice(error.message);
  }
}

async function tellHealth() {
  const { version } = await call("/version");
  byId("version").textContent = version;
  const response = await fetch("/readyz").catch(() => null);
  const told = response === null ? {} : await response.json().catch(() => ({}));
  const status = told.status === "ready" ? "" : (told.reasons ?? ["not ready"]).join("; ");
  byId("health").textContent = status;
}

function start() {
  models.start(tagging.offer, tagging.choose);
  jobs.start(() => models.refresh().catch(() => {}));
  tagging.start();
  byId("change-key").addEventListener("click", async () => {
    await askForKey("Where keys are in force, each call shows one.");
    refresh();
  });
  addEventListener("hashchange", go);
  document.addEventListener("visibilitychange", next);
  tellHealth().catch(() => {});
  go().then(refresh);
}

start();
