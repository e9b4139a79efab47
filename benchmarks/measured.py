"""Writes the recorded results of the benchmarks into the pages of the trainers.

    python -m benchmarks.measured

Every benchmark calls this when it records a result. The last section of each page in `docs/trainers`, "Measured", is
generated from the files in `benchmarks/results`. A trainer without results has no such section. A test checks that the
pages are up to date.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = ROOT / "docs" / "trainers"
HEADING = "\n## Measured\n"
#: Number of settings in the figures of Zhou et al. Results with fewer are of an unfinished run and are omitted.
MIN_SETTINGS = 5
#: Load average per core above which recorded seconds mean little.
MAX_LOAD = 2.0


def rewritten(page: str, kind: str) -> str:
    """Return a page with its last section generated again."""
    lines = _stripped(_SECTIONS.get(kind, partial(_online, kind))())
    return page.partition(HEADING)[0] + ("\n".join([HEADING, *lines]) + "\n" if lines else "")


def write_pages() -> None:
    for path in sorted(PAGES.glob("*.md")):
        if path.stem != "README":
            page = path.read_text(encoding="utf-8")
            path.write_text(rewritten(page, path.stem), encoding="utf-8")


def _tsuruoka(is_shown: Callable[[str], bool]) -> Iterator[str]:
    """Rows of Table 1 of Tsuruoka et al.: with our defaults, and with penalty and rates tuned as in the paper."""
    result = _read("tsuruoka") or {}
    for part, how in (("untuned", "not tuned"), ("tuned", "tuned as in the paper")):
        if part not in result:
            continue
        run = result[part]
        yield f"CoNLL-2000 chunking, `l1` {run['l1']:g}, {how} ({_source('tsuruoka', result, run)}):"
        rows = (
            [name, *_end(row), f"{row['f1']:.2f}"] for name, row in run["table"].items() if is_shown(name)
        )
        yield from _table([*_END, "F1"], rows)


def _line_search() -> Iterator[str]:
    """The figures of Zhou et al.: the spread of the final objectives."""
    for corpus, result in _zhou():
        grid = result.get("grid", {"curves": {"none": {}}})
        settings = len(grid["curves"]["none"])
        if settings >= MIN_SETTINGS:
            spread = grid["spread"]
            yield (
                f"{corpus}, {settings} pairs of initial rate and decay factor: the largest and the smallest objective "
                f"after the last pass differ by {spread['none']:,.0f}, and with the heuristic line search by "
                f"{spread['heuristic']:,.0f} "
                f"({_source(result['name'], result, grid)})."
            )
            yield ""


def _two_stage() -> Iterator[str]:
    for corpus, result in _zhou():
        if "two_stage" in result:
            run = result["two_stage"]
            part, last = run["part_of_time"], run["rounds"][-1]
            yield f"{corpus}, `l1` {result['l1']:g} ({_source(result['name'], result, run)}):"
            yield from _table(_END, ([name, *_end(last[name])] for name in ("OWL-QN", "two-stage")))
            if part is not None:
                yield f"`two-stage` comes within 0.1 % of the objective of OWL-QN in {part:.2f} of its time."
                yield ""


def _against_crfsuite(penalty: str) -> Iterator[str]:
    """The same objective minimised by python-crfsuite. Only the parts of the benchmark that were run."""
    result = _read("quasi_newton") or {}
    if row := result.get("optimum", {}).get(penalty):
        source = _source("quasi_newton", result, result["optimum"])
        yield f"CoNLL-2000, the features of CRFsuite, one thread ({source}):"
        names = ("python-crfsuite", "tagsmith, by the same rule", "tagsmith, as low as python-crfsuite")
        ends = ((name, row[name]) for name in names)
        yield from _table(
            ["iterations", "objective", "seconds"],
            (
                [name, str(end["iterations"]), f"{end['objective']:,.2f}", f"{end['seconds']:.1f}"]
                for name, end in ends
            ),
        )
    if penalty == "l1" and (each := result.get("iterations")):
        source = _source("quasi_newton", result, each)
        yield (
            f"An iteration is {each['times_faster_on_1_thread']:g} times faster than CRFsuite's on one thread and "
            f"{each['times_faster_on_2_threads']:g} times on two ({source}). Ratio: median over alternated rounds."
        )
        yield ""


def _online(kind: str) -> Iterator[str]:
    """An online learner: all variants after ten passes, and the time of a pass compared with CRFsuite."""
    result = _read("online") or {}
    if scores := result.get("scores"):
        own = {name: row for name, row in scores["tagsmith"].items() if name.split()[0] == kind}
        if own:
            yield f"CoNLL-2000 chunking, ten passes ({_source('online', result, scores)}):"
            rows = (
                [f"`{name}`", f"{row['f1']:.2f}", f"{row['active_features']:,}", f"{row['seconds']:.1f}"]
                for name, row in own.items()
            )
            yield from _table(["F1", "active features", "seconds"], rows)
    if row := result.get("passes", {}).get(kind):
        source = _source("online", result, result["passes"])
        yield (
            f"A pass over CoNLL-2000 is {row['times_faster']:g} times faster than with `{row['peer']}` of "
            f"python-crfsuite ({source}). Ratio: median over alternated rounds."
        )
        yield ""
    yield from _he_wang(kind)
    yield from _sun(kind)


def _he_wang(kind: str) -> Iterator[str]:
    """The rows of a learner in Table 5 of He and Wang, for each corpus that was run."""
    result = _read("he_wang") or {}
    rows = []
    for corpus in ("conll2000", "dutch", "pku"):
        for name, row in result.get(corpus, {}).get("table", {}).items():
            learner, _, update = name.partition(", ")
            if learner == kind.upper():
                title = ", ".join([result[corpus]["title"], *[f'`"{update}"`'] * bool(update)])
                passes = f"{row['passes_to_end']} of {row['passes']}"
                figures = [f"{row['f1']:.2f}", f"{row['paper']:.2f}", passes, f"{row['seconds']:.1f}"]
                rows.append([title, *figures])
    if rows:
        yield f"Table 5 of He and Wang ({_source('he_wang', result, result['conll2000'])}):"
        yield from _table(
            ["F1", "F1 in the paper", "passes until within 0.1 of the final F1", "seconds"], rows
        )


def _sun(kind: str) -> Iterator[str]:
    """Base NPs after one, five and ten passes."""
    result = _read("sun") or {}
    names = {"averaged-perceptron": "Avg-Perc", "perceptron": "Perc"}
    learner = names.get(kind, kind.upper())
    own = {name: row for name, row in result.get("table", {}).items() if name.split(",")[0] == learner}
    if own:
        yield f"F1 on base NPs of CoNLL-2000 ({_source('sun', result, result)}):"
        rows = (
            [name, *(f"{row[at]:.2f}" if at in row else "" for at in ("1", "5", "10"))]
            for name, row in own.items()
        )
        yield from _table(["1 pass", "5 passes", "10 passes"], rows)


def _zhou() -> Iterator[tuple[str, dict[str, Any]]]:
    for corpus, title in (("conll2000", "CoNLL-2000 chunking"), ("pku", "PKU word segmentation")):
        result = _read(f"zhou_{corpus}")
        if result is not None:
            yield title, {**result, "name": f"zhou_{corpus}"}


#: Table columns that describe the end of a run.
_END = ("passes", "objective", "active features", "seconds")


def _end(row: dict[str, Any]) -> list[str]:
    return [
        str(row["passes"]),
        f"{row['objective']:,.1f}",
        f"{row['active_features']:,}",
        f"{row['seconds']:.1f}",
    ]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table with blank lines around it. The first column has no heading."""
    yield ""
    yield f"| | {' | '.join(columns)} |"
    yield "|" + "---|" * (len(columns) + 1)
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def _read(name: str) -> dict[str, Any] | None:
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def _source(name: str, result: dict[str, Any], part: dict[str, Any]) -> str:
    """Return the file of the figures and the load of the machine, on which the seconds depend."""
    load = part.get("measured", result["machine"])["load_average"][1]
    cores = result["machine"]["cores"]
    note = "; compare F1, not seconds" if load > MAX_LOAD * cores else ""
    return (
        f"[{name}.json](../../benchmarks/results/{name}.json), {cores} cores, load average {load:.1f}{note}"
    )


def _stripped(lines: Iterator[str]) -> list[str]:
    """Return the lines without a blank one at the end."""
    kept = list(lines)
    return kept[:-1] if kept and not kept[-1] else kept


def _sgd_l1() -> Iterator[str]:
    yield from _tsuruoka(lambda name: name.startswith("SGD"))
    yield from _line_search()


def _owlqn() -> Iterator[str]:
    yield from _tsuruoka(lambda name: name == "OWL-QN")
    yield from _against_crfsuite("l1")


#: Pages with a section of their own. All others have the section of online learners.
_SECTIONS: dict[str, Callable[[], Iterator[str]]] = {
    "sgd-l1": _sgd_l1,
    "owlqn": _owlqn,
    "lbfgs": partial(_against_crfsuite, "l2"),
    "two-stage": _two_stage,
}


if __name__ == "__main__":
    write_pages()
