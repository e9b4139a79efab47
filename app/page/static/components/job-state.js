// Parts of a job that the list and the view share.

import { at, call } from "../api.js";
import { button, h } from "../dom.js";
import { number, scoreOf, seconds } from "../format.js";
import { confirmed } from "./dialog.js";

export const ENDED = new Set(["succeeded", "failed", "cancelled"]);
const WORDS = { pause: "Pause", resume: "Resume", cancel: "Cancel job", retry: "Try again" };

/** "train cites" */
export function titleOf(job) {
  const { kind, model, spec } = job;
  const what = { compare: `${spec.trainers?.length} trainers`, tune: spec.trainer?.kind }[kind];
  return `${kind} ${what ?? model ?? (spec.models ?? []).join(", ")}`.trim();
}

export function state(job) {
  return h("span", { class: `state ${job.state}` }, job.state);
}

/** The bar of a job that has not ended, with the time left. */
export function progressOf(job, progress = job.progress) {
  const fraction = job.state === "succeeded" ? 1 : progress?.fraction;
  const passes = progress?.passes ? `pass ${progress.pass} of ${progress.passes}` : progress?.phase ?? "";
  const run = progress?.run?.of > 1 ? `run ${progress.run.number} of ${progress.run.of}` : "";
  const left = progress?.eta_seconds != null && !ENDED.has(job.state) ? `${seconds(progress.eta_seconds)} left` : "";
  return h("div", { class: "progress" },
    h("progress", { max: "1", value: fraction ?? 0, "aria-label": `Progress of ${titleOf(job)}` }),
    h("span", { class: "quiet" }, [`${number(100 * (fraction ?? 0))} %`, run, passes, left].filter(Boolean).join(" · ")));
}

/** What came of a job, in a few words. */
export function outcome(job) {
  if (job.state === "failed") return job.error?.message ?? "failed";
  if (job.state !== "succeeded" || !job.result) return "";
  const { result } = job;
  if (job.kind === "train") return `${result.model}:${result.version}${result.promoted ? `, promoted to ${result.promoted}` : ""}`;
  if (job.kind === "evaluate") return result.models.map((each) => `${each.model}:${each.version} ${number(scoreOf(each.metrics), 2)}`).join(", ");
  if (job.kind === "compare") return `best: ${best(result.table)?.name ?? "none"}`;
  if (job.kind === "tune") return `best: ${Object.entries(result.best?.values ?? {}).map(([name, value]) => `${name.split(".").at(-1)} ${JSON.stringify(value)}`).join(", ")}`;
  if (job.kind === "tag" || job.kind === "rank") return `${number(result.sentences)} sentences`;
  return "done";
}

/** The score of a job, or of its last pass. */
export function scoreOfJob({ kind, result, progress }) {
  if (kind === "compare" && result) return best(result.table)?.score;
  if (kind === "tune" && result) return result.best?.mean;
  return scoreOf(result?.metrics?.dev ?? progress?.dev);
}

function best(rows) {
  return rows.filter((row) => row.score != null).sort((a, b) => b.score - a.score)[0];
}

/**
 * Buttons for the actions that have an effect now.
 * @param {any} job
 * @param {(changed: any | null, error: Error | null, action: string) => void} done
 */
export function actions(job, done) {
  return job.allowed_actions.map((name) => button(WORDS[name] ?? name, `${name} ${job.id}`, async () => {
    if (name === "cancel" && (await confirmed("Cancel job", [`Cancel ${titleOf(job)}? What it has learned is lost.`], {}, { danger: true })) === null) return;
    try {
      done(await call(`${at("jobs", job.id)}/${name}`, { method: "POST" }), null, name);
    } catch (error) {
      done(null, error, name);
    }
  }));
}
