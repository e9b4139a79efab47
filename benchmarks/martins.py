"""Tables 1 and 2 and Figure 2 of Martins, Smith, Aguiar and Figueiredo (2011): template selection with a budget.

    python -m benchmarks.martins --data ../shared/data [--corpus spanish] [--part budgets]

Corpora: CoNLL-2000 chunking with 96 templates (budgets 10 to 50), and names of CoNLL-2002, `spanish` and `dutch`, with
452 templates (budgets 100, 200, 300). `martins_templates` explains how the sets were derived from the paper. Parts:

- mira: all templates, 15 passes, without an upper limit of steps, averaged. The paper uses a tuned L2 penalty.
- budgets: `sparseptron`, 5 passes of selection and 10 of MIRA with all features of the selected templates. Templates
  are ranked and shrunk relative to d_m.
- gain: the templates with the highest information gain, as many as each budget, then 15 passes of MIRA (chunking
  only).
- l1: `sgd-l1`, 15 passes. The C = 1 / (lambda N) of the paper, 0.1, 0.5 and 1, is l1 10, 2 and 1 of a sum over
  sequences.
- speed (chunking only): tokens per second of the model with a budget of 30, of the model with all templates, and of an
  L1 model with as many features (within 10 %), alternated. Models that an earlier run left in `--models` are reused.

The size of a model is its number of features: weights that are not zero. Each row is recorded when it is finished; the
results of other parts are kept.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from matplotlib import pyplot as plt

from benchmarks import common, learners, martins_templates
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.evaluate.spans import evaluate
from tagsmith.core.features.spec import FeatureSpec, InformationGain
from tagsmith.core.learn.problem.information_gain import compile_selected
from tagsmith.core.learn.problem.problem import Compiled
from tagsmith.core.learn.run.loop import Learned, learn
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.model.file import load, save
from tagsmith.core.model.model import SparseModel
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline import warm
from tagsmith.core.pipeline.build import build_model

PARTS = ("mira", "budgets", "gain", "l1", "speed")
STRENGTHS = {"C = 0.1": 10.0, "C = 0.5": 2.0, "C = 1": 1.0}
PASSES = 15
#: Rounds of tagging, and the maximum relative difference in size of the L1 model.
ROUNDS, NEAR_SIZE = 7, 0.1
#: Targets: loss of F1 at a budget of 30, and shares of MIRA's features in the model and in memory.
BAR_BUDGET, BAR_LOSS, BAR_SHARE = 30, 0.2, 0.15

#: F1 (on dev and) on the test set, and features.
PAPER: dict[str, dict[str, Any]] = {
    "conll2000": {
        "MIRA": (93.10, 5_300_396), "B = 10": (92.99, 71_075), "B = 20": (93.28, 158_844),
        "B = 30": (93.59, 389_065), "B = 40": (93.42, 662_018), "B = 50": (93.40, 891_378),
    },
    "spanish": {
        "MIRA": (70.38, 74.09, 8_598_246), "C = 0.1": (69.19, 71.9, 68_565), "C = 0.5": (70.75, 72.38, 1_017_769),
        "C = 1": (71.7, 74.03, 1_555_683), "B = 100": (71.79, 73.62, 83_036), "B = 200": (72.08, 75.05, 354_872),
        "B = 300": (71.48, 73.3, 600_646),
    },
    "dutch": {
        "MIRA": (69.15, 71.54, 5_727_004), "C = 0.1": (64.07, 66.35, 164_960), "C = 0.5": (66.82, 69.42, 565_704),
        "C = 1": (70.43, 71.89, 953_668), "B = 100": (69.48, 72.83, 128_320), "B = 200": (71.03, 73.33, 447_193),
        "B = 300": (71.2, 72.59, 889_660),
    },
}  # fmt: skip


@dataclass(frozen=True)
class Task:
    """A corpus of the paper. `tests` are scored at the end, by name."""

    name: str
    features: FeatureSpec
    budgets: tuple[int, ...]
    train: Corpus
    tests: dict[str, Corpus]


def chunking(data: Path) -> Task:
    train, test = learners.conll2000(data)
    return Task("conll2000", martins_templates.CHUNKING, (10, 20, 30, 40, 50), train, {"test": test})


def names(language: str, code: str) -> Callable[[Path], Task]:
    def task(data: Path) -> Task:
        train, dev, test = (
            learners.corpus(common.read(data / "conll2002" / f"{code}.{part}"))
            for part in ("train", "testa", "testb")
        )
        return Task(language, martins_templates.NAMES, (100, 200, 300), train, {"dev": dev, "test": test})

    return task


TASKS: dict[str, Callable[[Path], Task]] = {
    "conll2000": chunking,
    "spanish": names("spanish", "esp"),
    "dutch": names("dutch", "ned"),
}


def mira(passes: int = PASSES) -> dict[str, Any]:
    return {"kind": "mira", "passes": passes}


def sparseptron(budget: int) -> dict[str, Any]:
    reading = {"rank": "scaled", "shrink": "scaled", "refit_features": "template"}
    return {"kind": "sparseptron", "budget": budget, **reading}


def sgd_l1(l1: float, passes: int = PASSES) -> dict[str, Any]:
    return {"kind": "sgd-l1", "l1": l1, "passes": passes}


def rows(task: Task, part: str) -> dict[str, dict[str, Any]]:
    """The rows of a part that learn from all templates, as trainer specs."""
    if part == "mira":
        return {"MIRA": mira()}
    if part == "budgets":
        return {f"B = {budget}": sparseptron(budget) for budget in task.budgets}
    return {name: sgd_l1(l1) for name, l1 in STRENGTHS.items()} if part == "l1" else {}


class Bench:
    """A corpus compiled once, for all rows that see the same templates."""

    def __init__(self, task: Task, features: FeatureSpec | None = None) -> None:
        self.compiled: Compiled = compile_selected(features or task.features, task.train)[0]
        self._tests = {name: self.compiled.problem_of(test) for name, test in task.tests.items()}

    def learned(self, trainer: dict[str, Any]) -> Learned:
        """Run a trainer without using a test set."""
        learning = Learning.model_validate({"trainer": trainer})
        warm.trainer(learning.trainer)
        return finished(learn(learning, self.compiled.problem, None))

    def row(self, learned: Learned, path: Path) -> dict[str, Any]:
        """Return the figures of a run, and write its model to a file."""
        model = build_model(self.compiled, learned.weights)
        save(model, path)
        found: dict[str, Any] = {
            f"f1_{name}": round(
                evaluate(test.labels, test.data.gold, learned.weights.decode(test), test.data.offsets).f1, 2
            )
            for name, test in self._tests.items()
        }
        found |= {"features": learned.active_features, "templates": len(model.features.unigrams)}
        found["size_bytes"] = path.stat().st_size
        found |= {"seconds": round(learned.seconds, 1), "passes": learned.passes}
        found["features_by_pass"] = [point["active_features"] for point in learned.curve]
        if "selection" in learned.findings:
            selection = learned.findings["selection"]
            found["instantiated_by_pass"] = selection["instantiated_by_pass"]
            found["peak_instantiated"] = selection["peak_instantiated"]
            found["kept"] = [each["name"] for each in selection["templates"] if each["kept"]]
        return found


def measured(task: Task, parts: list[str], folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of the parts of a table as they are finished."""
    wanted = {name: trainer for part in parts for name, trainer in rows(task, part).items()}
    if wanted:
        bench = Bench(task)
        for name, trainer in wanted.items():
            yield name, bench.row(bench.learned(trainer), folder / f"{task.name} {name}.model")
        del bench
    for budget in task.budgets if "gain" in parts and task.name == "conll2000" else ():
        select = InformationGain(kind="information-gain", templates=budget)
        chosen = Bench(task, task.features.model_copy(update={"select": select}))
        name = f"gain, B = {budget}"
        yield name, chosen.row(chosen.learned(mira()), folder / f"{task.name} {name}.model")


def verdict(table: dict[str, Any], speed: dict[str, Any] | None) -> dict[str, bool]:
    """Compare chunking with the targets, as far as measured."""
    found: dict[str, bool] = {}
    chosen, whole = table.get(f"B = {BAR_BUDGET}"), table.get("MIRA")
    if chosen and whole:
        found["F1 at B = 30 at least MIRA's minus 0.2"] = chosen["f1_test"] >= whole["f1_test"] - BAR_LOSS
        found["with at most 15 % of its features"] = chosen["features"] <= BAR_SHARE * whole["features"]
        share = chosen["peak_instantiated"] / max(whole["features_by_pass"])
        found["peak of features in memory under 15 % of MIRA's"] = share < BAR_SHARE
    if speed:
        found["B = 30 tags faster than all templates"] = speed["MIRA"]["times_ours"] > 1
        found["and than an L1 model of its size"] = speed["L1"]["times_ours"] > 1
    return found


def of_size(bench: Bench, features: int) -> Learned:
    """Train an L1 model with about this number of features, by a logarithmic search for the strength."""
    low, high = 1e-3, 10.0
    for _ in range(12):
        l1 = (low * high) ** 0.5
        learned = bench.learned(sgd_l1(l1, 5))
        print(f"l1 {l1:.4g}: {learned.active_features} features", flush=True)
        if abs(learned.active_features / features - 1) <= NEAR_SIZE:
            return learned
        low, high = (l1, high) if learned.active_features > features else (low, l1)
    raise SystemExit("no strength gives an L1 model of that size")


def speed_models(task: Task, folder: Path) -> dict[str, Path]:
    """Return the three models; train those that are missing in the directory."""
    paths = {name: folder / f"{task.name} {name}.model" for name in ("B = 30", "MIRA", "L1")}
    missing = [name for name, path in paths.items() if not path.exists()]
    bench = Bench(task) if missing else None
    for name in missing:
        assert bench is not None
        if name == "L1":
            learned = of_size(bench, load(paths["B = 30"]).active_features)
        else:
            learned = bench.learned(mira() if name == "MIRA" else sparseptron(BAR_BUDGET))
        save(build_model(bench.compiled, learned.weights), paths[name])
    return paths


def measure_speed(task: Task, folder: Path) -> dict[str, Any]:
    """Measure tokens per second, from token lists to labels."""
    taggers = {name: Tagger.open(path) for name, path in speed_models(task, folder).items()}
    test = task.tests["test"]
    columns = [[column.vocabulary[i] for i in column.ids.tolist()] for column in test.columns]
    tokens = [list(row) for row in zip(*columns, strict=True)]
    text = [tokens[begin:end] for begin, end in pairwise(test.offsets.tolist())]

    def seconds_of(tagger: Tagger) -> Callable[[], float]:
        tagger.tag(text[:10])
        return lambda: common.timed(lambda: tagger.tag(text))

    seconds = common.alternate({name: seconds_of(tagger) for name, tagger in taggers.items()}, ROUNDS)
    models = {name: tagger.model for name, tagger in taggers.items()}
    return {
        "measured": common.moment(),
        "tokens_per_second": {name: round(test.tokens / median(each)) for name, each in seconds.items()},
        **{name: each | _size(models[name]) for name, each in common.summary(seconds, "B = 30").items()},
    }


def _size(model: SparseModel) -> dict[str, int]:
    return {"features": model.active_features, "templates": len(model.features.unigrams)}


def draw_memory(table: dict[str, Any], path: Path) -> None:
    """Figure 2: features in memory after each pass."""
    figure, axes = plt.subplots(figsize=(7.5, 4.8), constrained_layout=True)
    whole, chosen = table["MIRA"], table[f"B = {BAR_BUDGET}"]
    for name, counts in (
        ("MIRA, all 96 templates", whole["features_by_pass"]),
        (f"sparseptron + MIRA, B = {BAR_BUDGET}", chosen["instantiated_by_pass"]),
    ):
        axes.plot(
            range(1, len(counts) + 1), [count / 1e6 for count in counts], "o-", markersize=3, label=name
        )
    axes.set_ylim(bottom=0)
    axes.set_xlabel("passes")
    axes.set_ylabel("features in memory, millions")
    axes.set_title("CoNLL-2000: most features that had a place in memory in each pass", fontsize=10)
    axes.grid(visible=True, alpha=0.25)
    axes.legend()
    learners.save(figure, path)


def draw_sizes(tables: dict[str, Any], path: Path) -> None:
    """F1 on the test set against the features of the model, by the method of selection."""
    figure, panels = plt.subplots(
        1, len(tables), figsize=(6 * len(tables), 4.8), constrained_layout=True, squeeze=False
    )
    kinds = (("B = ", "sparseptron"), ("gain", "information gain"), ("C = ", "L1"), ("MIRA", "MIRA, all"))
    for axes, (name, table) in zip(panels[0], tables.items(), strict=True):
        for start, label in kinds:
            # In the order of budgets and strengths: a larger budget need not be a larger model.
            found = [(row["features"], row["f1_test"], n) for n, row in table.items() if n.startswith(start)]
            if found:
                axes.plot([x for x, _, _ in found], [y for _, y, _ in found], "o-", markersize=4, label=label)
            for x, y, row_name in found:
                axes.annotate(
                    row_name.split(", ")[-1], (x, y), fontsize=7, xytext=(3, 4), textcoords="offset points"
                )
        axes.set_xscale("log")
        axes.set_xlabel("features of the model")
        axes.set_title(name)
        axes.grid(visible=True, which="both", alpha=0.25)
        axes.legend(fontsize=8)
    panels[0][0].set_ylabel("F1 on the test set")
    learners.save(figure, path)


def keep(corpus: str, key: str, value: Any) -> dict[str, Any]:
    """Record one result; keep those that other runs have recorded in the meantime."""
    result = common.recorded("martins") | {"paper": PAPER}
    own = result.setdefault(corpus, {})
    if key == "speed":
        own["speed"] = value
    else:
        own.setdefault("table", {})[key] = value | {"measured": common.moment()}
    if corpus == "conll2000":
        own["verdict"] = verdict(own.get("table", {}), own.get("speed"))
    common.record("martins", result)
    return result


def draw(result: dict[str, Any]) -> None:
    tables = {name: result[name]["table"] for name in TASKS if len(result.get(name, {}).get("table", ())) > 1}
    if tables:
        draw_sizes(tables, common.RESULTS / "martins_sizes.png")
    if {"MIRA", f"B = {BAR_BUDGET}"} <= set(tables.get("conll2000", {})):
        draw_memory(tables["conll2000"], common.RESULTS / "martins_memory.png")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    parser.add_argument("--corpus", choices=("all", *TASKS), default="all", help="keep the others' results")
    parser.add_argument("--part", choices=("all", *PARTS), default="all", help="keep the others' results")
    parser.add_argument("--models", type=Path, help="a folder for model files; a passing one by default")
    options = parser.parse_args()
    with TemporaryDirectory() as passing:
        folder = options.models or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        for corpus in TASKS if options.corpus == "all" else [options.corpus]:
            run(TASKS[corpus](options.data), list(PARTS) if options.part == "all" else [options.part], folder)
    result = common.recorded("martins")
    for what, holds in result.get("conll2000", {}).get("verdict", {}).items():
        print("pass" if holds else "FAIL", what)
    draw(result)


def run(task: Task, parts: list[str], folder: Path) -> None:
    """Measure and record the parts of a corpus."""
    for name, row in measured(task, parts, folder):
        print(task.name, name, {k: v for k, v in row.items() if not isinstance(v, list)}, flush=True)
        keep(task.name, name, row)
    if "speed" in parts and task.name == "conll2000":
        speed = measure_speed(task, folder)
        print(speed, flush=True)
        keep(task.name, "speed", speed)


if __name__ == "__main__":
    main()
