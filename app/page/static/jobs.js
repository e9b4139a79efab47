// Jobs: the list with live progress, and one of them with its curve and what it says.

import { call, follow } from "./api.js";
import { button, byId, confirmed, fault, h, number, refill, row, say, scoreOf, seconds, table, time } from "./dom.js";
import { curves } from "./plot.js";

const ENDED = new Set(["succeeded", "failed", "cancelled"]);
const PAGE = 15;
// Browsers open six connections to a server and no more, all tabs together: some must stay free for calls.
const STREAMS = 3;
// How many of its last lines are shown of a job.
const LINES = 12;
// Events come in bursts when a long job is read from its beginning: one drawing for all that came meanwhile.
const DRAW_MS = 100;

let jobs = [];
let limit = PAGE;
let more = false;
// The id of the job that is shown, undefined until one was chosen: then it is the newest.
let selected;
let onEnd = () => {};
// Job id -> its stream: how to end it, the newest progress, the points of its curve by run, its last lines.
const streams = new Map();
let drawing = null;

/** `ended()` is called when a job has ended: there may be another version. */
export function start(ended) {
  onEnd = ended;
}

/** Show another job. */
export async function select(id) {
  if (id !== selected) say("job-said");
  selected = id;
  await refresh();
}

/** Read the list anew, and follow what runs. */
export async function refresh() {
  const page = await call(`/jobs?limit=${limit}`);
  const unfinished = new Set(jobs.filter((job) => !ENDED.has(job.state)).map((job) => job.id));
  [jobs, more] = [page.data, page.next_cursor !== null];
  if (jobs.some((job) => ENDED.has(job.state) && unfinished.has(job.id))) onEnd();
  selected ??= jobs[0]?.id;
  if (selected !== undefined && !jobs.some((job) => job.id === selected)) {
    try {
      jobs.push(await call(`/jobs/${encodeURIComponent(selected)}`));
    } catch (error) {
      if (error.status !== 404) throw error;
    }
  }
  followSome();
  draw();
}

/** Whether anything may change on its own. */
export function underWay() {
  return jobs.some((job) => !ENDED.has(job.state));
}

function followSome() {
  const running = jobs.filter((job) => job.id !== selected && job.state === "running").map((job) => job.id);
  const known = jobs.some((job) => job.id === selected);
  const wanted = new Set([...(known ? [selected] : []), ...running].slice(0, STREAMS));
  for (const [id, stream] of streams) {
    if (!wanted.has(id)) {
      stream.control.abort();
      streams.delete(id);
    }
  }
  for (const id of wanted) if (!streams.has(id)) open(id);
}

function open(id) {
  const stream = { control: new AbortController(), progress: null, runs: new Map(), lines: [] };
  streams.set(id, stream);
  follow(id, stream.control.signal, (type, event) => {
    if (type === "progress") stream.progress = event;
    else heard(id, stream, event);
    drawing ??= setTimeout(() => { drawing = null; draw(); }, DRAW_MS);
  });
}

function heard(id, stream, event) {
  stream.lines = [...stream.lines, event].slice(-LINES);
  if (event.type === "pass") {
    stream.progress = event.data;
    const name = event.data.run?.name ?? "this job";
    if (!stream.runs.has(name)) stream.runs.set(name, []);
    stream.runs.get(name).push({
      pass: event.data.pass, score: scoreOf(event.data.dev), objective: event.data.objective,
    });
  }
  const job = jobs.find((each) => each.id === id);
  if (event.type === "state" && job !== undefined && !ENDED.has(job.state) && job.state !== event.data.state) {
    job.state = event.data.state;
    // The allowed actions and the outcome are in the job, not in the event.
    refresh().catch(() => {});
    if (ENDED.has(job.state)) onEnd();
  }
}

function draw() {
  drawList();
  const job = jobs.find((each) => each.id === selected);
  const box = byId("job");
  if (job !== undefined) drawJob(box, job);
  else if (selected !== undefined) refill(box, fault(new Error(`There is no job ${selected}.`)));
}

function drawList() {
  const listed = jobs.slice(0, limit);
  if (listed.length === 0) {
    refill(byId("job-list"), h("p", { class: "quiet" }, "None yet."));
    return;
  }
  const rows = listed.map((job) => row({ class: job.id === selected ? "selected" : "" },
    h("a", { href: `#job/${encodeURIComponent(job.id)}`, "data-key": `job ${job.id}`, title: job.id,
      "aria-current": job.id === selected && "true" }, `${job.kind} ${job.model ?? ""}`),
    state(job),
    ENDED.has(job.state) ? outcome(job) : progressOf(job),
    time(job.created_at)));
  refill(byId("job-list"),
    table("Jobs, newest first", ["job", "state", "progress or outcome", "posted"], rows),
    more && button("Older", "older jobs", () => {
      limit = Math.min(limit + 2 * PAGE, 500);
      refresh().catch(() => {});
    }));
}

function drawJob(box, job) {
  const stream = streams.get(job.id);
  const trainer = job.spec.trainer?.kind;
  refill(box,
    h("h3", {}, `${job.kind} ${job.model ?? ""} `, state(job)),
    h("p", { class: "quiet" }, [job.id, trainer, `${job.queue} queue`, `worked ${seconds(job.worked_seconds)}`,
      job.retry_of && `again after ${job.retry_of}`].filter((each) => each).join(" · ")),
    h("p", { class: "buttons" }, job.allowed_actions.map((action) =>
      button(action[0].toUpperCase() + action.slice(1), `${action} ${job.id}`, () => act(job.id, action)))),
    job.error && fault(job.error),
    progressOf(job),
    stream && curves(stream.runs),
    stream && h("ol", { class: "lines", "aria-label": "What it says, newest last" }, ...stream.lines.map((event) =>
      h("li", { class: event.level }, time(event.at), ` ${event.message}`))));
}

async function act(id, action) {
  if (action === "cancel" && !(await confirmed("Cancel the job", `End ${id}? What it has learned is lost.`))) return;
  say("job-said");
  try {
    const job = await call(`/jobs/${encodeURIComponent(id)}/${action}`, { method: "POST" });
    if (action === "retry") location.hash = `#job/${encodeURIComponent(job.id)}`;
  } catch (error) {
    say("job-said", fault(error));
  }
  await refresh().catch(() => {});
}

function state(job) {
  return h("span", { class: `state ${job.state}` }, job.state);
}

function progressOf(job) {
  const progress = streams.get(job.id)?.progress ?? job.progress;
  if (ENDED.has(job.state) || !progress) return null;
  // Of one that stands still the pass is true, the speed is not.
  const goes = job.state === "running";
  const told = [
    progress.run && `${progress.run.name} (${progress.run.number} of ${progress.run.of})`,
    progress.passes > 0 && `pass ${progress.pass} of ${progress.passes}`,
    goes && progress.tokens_per_second && `${number(progress.tokens_per_second / 1e6, 2)} M tokens/s`,
    goes && progress.eta_seconds != null && `${seconds(progress.eta_seconds)} left`,
  ].filter((each) => each).join(", ");
  return h("span", { class: "progress" },
    h("progress", { max: 1, value: progress.fraction ?? 0, "aria-label": `Progress of ${job.id}` }),
    h("small", {}, told || progress.phase || ""));
}

function outcome(job) {
  if (job.error) return job.error.code;
  const result = job.result;
  if (!result) return "";
  if (job.kind === "train") {
    const score = scoreOf(result.metrics?.dev);
    return `${result.model}:${result.version}${score == null ? "" : `, ${number(score, 2)} %`}`;
  }
  if (job.kind === "tag") return `${number(result.tokens)} tokens`;
  return "";
}
