// One job: live progress and curves, then its result.

import { at, call, follow } from "../api.js";
import { action, fill, h, panel, refill, select } from "../dom.js";
import { featuresOf, scoreOf, seconds, shortId, time } from "../format.js";
import { curves, pointsOf } from "../components/curves.js";
import { actions, ENDED, progressOf, state, titleOf } from "../components/job-state.js";
import { resultOf } from "../components/job-result.js";
import { facts } from "../components/table.js";
import { fault } from "../components/toast.js";
import { go, to } from "../router.js";

// Events come in bursts when a long job is read from its beginning: one drawing for all that came meanwhile.
const DRAW_MS = 80;
// Other runs of the model that can be laid over the curve.
const OTHERS = 12;
const LOG_LINES = 500;

/** @param {HTMLElement} box @param {import("../router.js").Address} address @param {AbortSignal} signal */
export async function show(box, { path: [, id] }, signal) {
  let job = await call(at("jobs", id), { signal });
  document.title = `${titleOf(job)} · Tagsmith`;
  const live = { progress: job.progress, runs: new Map(), lines: [], warnings: [] };
  /** @type {Map<string, import("../components/curves.js").Run>} */
  const overlaid = new Map();
  const [head, said, result, log] = [h("div"), h("div"), h("div"), h("ol", { class: "log" })];
  const curve = curves();
  const picker = h("div", { class: "row" });
  const charts = panel("Learning curve", picker, curve.element);
  let drawing = null;
  let drawn = "";

  fill(box, head, said, charts, result,
    h("details", { class: "panel" }, h("summary", {}, "Log"), h("div", { class: "scroll log-box", tabindex: "0", role: "region", "aria-label": "Log" }, log)),
    h("details", { class: "panel" }, h("summary", {}, "Spec"), h("pre", { class: "snippet", tabindex: "0", "aria-label": "Spec" }, JSON.stringify(job.spec, null, 2))));
  draw();
  offerOthers().catch(() => {});
  follow(job.id, signal, (type, event) => {
    if (type === "progress") live.progress = event;
    else heard(event);
    drawing ??= setTimeout(() => { drawing = null; if (!signal.aborted) draw(); }, DRAW_MS);
  });

  function heard(event) {
    if (live.lines.length < LOG_LINES || event.type !== "pass") live.lines.push(event);
    if (event.level === "warning") live.warnings.push(event.message);
    if (event.type === "pass") {
      live.progress = event.data;
      const name = event.data.run?.name ?? "";
      if (!live.runs.has(name)) live.runs.set(name, new Map());
      // A pass that is repeated after a resume replaces the earlier one.
      live.runs.get(name).set(event.data.pass, { pass: event.data.pass, seconds: event.data.seconds,
        score: scoreOf(event.data.dev), objective: event.data.objective, active: event.data.active_features });
    }
    // The allowed actions and the result are in the job, not in the event.
    if (event.type === "state" && event.data.state !== job.state && !ENDED.has(job.state)) read();
  }

  async function read() {
    try {
      job = await call(at("jobs", job.id), { signal });
      draw();
    } catch (error) {
      if (!signal.aborted) fill(said, fault(error));
    }
  }

  function draw() {
    drawHead();
    const runs = [...live.runs].map(([name, points]) => ({ name: name || nameOf(job), key: name || job.id, points: [...points.values()] }));
    const trains = ["train", "compare", "tune"].includes(job.kind);
    const own = stored() ?? runs;
    charts.hidden = !trains || (ENDED.has(job.state) && own.length === 0 && overlaid.size === 0);
    curve.update([...own, ...overlaid.values()]);
    drawLog();
    const next = `${job.state} ${job.result !== null}`;
    if (next !== drawn) fill(result, job.state === "succeeded" && job.result && resultOf(job));
    drawn = next;
  }

  /** The curves in the result: whole at once, while events arrive one by one. */
  function stored() {
    if (job.result?.curves) return job.result.curves.map((each) => ({ name: each.name, points: pointsOf(each.points) }));
    return job.result?.curve ? [{ name: nameOf(job), key: job.id, points: pointsOf(job.result.curve) }] : null;
  }

  function drawHead() {
    const ended = ENDED.has(job.state);
    const { result: made } = job;
    refill(head, h("div", { class: "row spread" },
      h("h1", {}, titleOf(job), " ", state(job)),
      h("div", { class: "row" },
        job.kind === "train" && job.state === "succeeded" && action("Try it", to(["playground"], { model: `${made.model}:${made.version}` }), { class: "button primary" }),
        job.kind === "train" && job.state === "succeeded" && action("Show the model", to(["models", made.model])),
        ...actions(job, acted))),
    !ended && progressOf(job, live.progress),
    job.state === "failed" && h("div", { class: "notice", role: "alert" }, h("p", {}, job.error?.message ?? "The job failed.")),
    ...live.warnings.slice(0, 3).map((each) => h("p", { class: "warning" }, each)),
    facts([["Job", h("code", { title: job.id }, shortId(job.id))], ["Created", time(job.created_at)],
      job.finished_at && ["Finished", time(job.finished_at)],
      ["Worked", seconds(job.worked_seconds)], job.result?.corpus_name && ["Corpus", job.result.corpus_name], job.spec.trainer?.kind && ["Trainer", job.spec.trainer.kind],
      job.spec.features && ["Features", featuresOf(job.spec)],
      job.retry_of && ["Repeats", h("a", { href: to(["jobs", job.retry_of]) }, shortId(job.retry_of))]]));
  }

  function acted(changed, error, name) {
    fill(said, error && fault(error));
    if (name === "retry" && changed) go(["jobs", changed.id]);
    else read();
  }

  function drawLog() {
    if (log.childElementCount > live.lines.length) fill(log);
    log.append(...live.lines.slice(log.childElementCount).map((event) => h("li", { class: event.level },
      h("time", { datetime: event.at, class: "quiet" }, new Date(event.at).toLocaleTimeString()), " ", event.message)));
  }

  async function offerOthers() {
    if (job.kind !== "train") return;
    const page = await call(`/jobs?limit=50&model=${encodeURIComponent(job.model)}`, { signal });
    const others = page.data.filter((each) => each.kind === "train" && each.id !== job.id && each.result?.version).slice(0, OTHERS);
    if (others.length === 0) return;
    const choose = select([["", "Add another run …"], ...others.map((each) => [each.id, `${nameOf(each)} (${each.spec.trainer.kind})`])], "",
      async (value) => {
        choose.value = "";
        if (value === "") return;
        // Jobs of a list have no curves.
        const other = await call(`/jobs/${value}`, { signal });
        overlaid.set(other.id, { name: nameOf(other), points: pointsOf(other.result.curve) });
        draw();
      }, { "aria-label": "Add another run" });
    fill(picker, choose);
  }
}

function nameOf(job) {
  return job.result?.version ? `${job.result.model}:${job.result.version}` : "this run";
}
