// Brings the views together: the navigation, the address, the key.

import { call, key } from "./api.js";
import { byId, fill, h, svg } from "./dom.js";
import { acceptDrops } from "./components/drop-zone.js";
import { askForKey } from "./components/key-dialog.js";
import { fault, notice } from "./components/toast.js";
import { upload } from "./components/upload.js";
import { address, go } from "./router.js";
import * as playground from "./views/playground.js";
import * as corpora from "./views/corpora.js";
import * as corpus from "./views/corpus.js";
import * as train from "./views/train.js";
import * as jobs from "./views/jobs.js";
import * as job from "./views/job.js";
import * as models from "./views/models.js";
import * as model from "./views/model.js";
import * as diff from "./views/diff.js";
import * as compare from "./views/compare.js";

// Icons of 24 by 24.
const VIEWS = [
  { id: "playground", name: "Playground", short: "Play", icon: "M4 5h16M4 11h9M4 17h6M15 14l5 3-5 3z" },
  { id: "corpora", name: "Corpora", icon: "M5 4h11l3 3v13H5zM8 10h8M8 14h8M8 17h5" },
  { id: "train", name: "Train", icon: "M3 19l6-7 4 3 8-10M15 5h6v6" },
  { id: "jobs", name: "Jobs", icon: "M12 3a9 9 0 1 0 9 9M12 7v5l3 3" },
  { id: "models", name: "Models", icon: "M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9" },
  { id: "compare", name: "Compare", icon: "M5 20V10M12 20V4M19 20v-7" },
];
const SINGLE = { corpora: corpus, jobs: job, models: model };
const LISTS = { playground, corpora, train, jobs, models, compare };

let control = new AbortController();

/** The view of an address. */
function viewOf({ path: [area = "playground", item, sub] }) {
  if (area === "models" && sub === "diff") return diff;
  return item === undefined ? LISTS[area] : SINGLE[area];
}

async function show() {
  control.abort();
  control = new AbortController();
  const { signal } = control;
  const here = address();
  const view = viewOf(here);
  const box = h("div", { class: "view" });
  drawNavigation(here.path[0] ?? "playground");
  const title = here.path[1] ?? VIEWS.find((each) => each.id === here.path[0])?.name ?? "Playground";
  document.title = `${title} · Tagsmith`;
  fill(byId("view"), box);
  scrollTo(0, 0);
  try {
    if (view === undefined) throw new Error("There is nothing at this address.");
    await view.show(box, here, signal);
    if (!signal.aborted) notice("");
    box.dataset.shown = "";
  } catch (error) {
    if (!signal.aborted) fill(box, h("h1", {}, "Not shown"), fault(error));
  }
}

function drawNavigation(current) {
  fill(byId("nav"), ...VIEWS.map(({ id, name, short, icon }) => h("a", {
    href: `#/${id}`, "aria-current": id === current ? "page" : null, "aria-label": name,
  }, svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, svg("path", { d: icon })),
  h("span", { class: "long" }, name), h("span", { class: "brief" }, short ?? name))));
}

async function tellVersion() {
  const { version } = await call("/version");
  byId("version").textContent = version;
  const response = await fetch("/readyz").catch(() => null);
  const told = response === null ? {} : await response.json().catch(() => ({}));
  if (told.status !== undefined && told.status !== "ready") notice((told.reasons ?? ["The server is not ready."]).join("; "));
}

function start() {
  byId("change-key").addEventListener("click", async () => {
    await askForKey("Where keys are required, each call sends one.", key, { unasked: false });
    show();
  });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
  });
  acceptDrops(upload);
  addEventListener("hashchange", show);
  if (location.hash === "" || location.hash === "#") go(["playground"]);
  else show();
  tellVersion().catch(() => {});
}

start();
