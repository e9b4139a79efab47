// Jobs: the list, read again while anything runs.

import { call } from "../api.js";
import { action, button, fill, h, refill, select } from "../dom.js";
import { ago, number, shortId } from "../format.js";
import { ENDED, outcome, progressOf, scoreOfJob, state, titleOf } from "../components/job-state.js";
import { table } from "../components/table.js";
import { notice } from "../components/toast.js";
import { note, to } from "../router.js";

const PAGE = 30;
// While a job runs the list changes by itself; else only when somebody else does something.
const BUSY_MS = 1000;
const IDLE_MS = 5000;
const STATES = ["queued", "running", "paused", "succeeded", "failed", "cancelled"];

/** @param {HTMLElement} box @param {import("../router.js").Address} address @param {AbortSignal} signal */
export async function show(box, { query }, signal) {
  let limit = PAGE;
  let filter = query.get("state") ?? "";
  const rows = h("div");
  fill(box, h("div", { class: "row spread" }, h("h1", {}, "Jobs"),
    h("label", { class: "inline" }, "State ", select([["", "any"], ...STATES.map((each) => [each, each])], filter,
      (value) => { filter = value; note({ state: value }); read(); }))), rows);
  let timer = null;
  signal.addEventListener("abort", () => clearTimeout(timer));
  await read();

  async function read() {
    clearTimeout(timer);
    let busy = false;
    try {
      const page = await call(`/jobs?limit=${limit}${filter && `&state=${filter}`}`, { signal });
      busy = page.data.some((job) => !ENDED.has(job.state));
      draw(page);
      notice("");
    } catch (error) {
      if (signal.aborted) return;
      notice(error.message);
    }
    clearTimeout(timer);
    timer = setTimeout(next, busy ? BUSY_MS : IDLE_MS);
  }

  function next() {
    // A page that nobody looks at asks for nothing.
    if (!document.hidden) read();
    else document.addEventListener("visibilitychange", next, { once: true, signal });
  }

  function draw(page) {
    if (page.data.length === 0) {
      fill(rows, h("div", { class: "empty" }, h("h2", {}, filter ? `No job is ${filter}` : "No job yet"),
        h("p", {}, "Training, evaluation and other long work run as jobs."), action("Train a model", "#/train", { class: "button primary" })));
      return;
    }
    refill(rows, table("Jobs, newest first", [
      { name: "Job", show: (job) => h("a", { href: to(["jobs", job.id]), "data-key": job.id, title: job.id }, titleOf(job)) },
      { name: "State", show: state },
      { name: "Progress or result", show: (job) => (ENDED.has(job.state) ? outcome(job) : progressOf(job)) },
      { name: "Score", right: true, show: (job) => number(scoreOfJob(job), 2) },
      { name: "Created", show: (job) => ago(job.created_at) },
      { name: "Id", show: (job) => h("code", { title: job.id }, shortId(job.id)) },
    ], page.data), page.next_cursor !== null && button("Older jobs", "older jobs", () => { limit = Math.min(limit + PAGE, 500); read(); }));
  }
}
