"""Writes the recorded results of the benchmarks into the reference of trainers.

    python -m benchmarks.measured

The last section of each page in `docs/trainers`, "Measured", is made of the files in `benchmarks/results`, and of
nothing else; a page of which nothing was measured has none. A test holds the two equal.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = ROOT / "docs" / "trainers"
HEADING = "\n## Measured\n"
#: Settings in the figures of Zhou et al.; of fewer, a run that was not finished, nothing is said.
FIGURES = 5


def rewritten(page: str, kind: str) -> str:
    """A page with its last section made anew."""
    lines = list(_SECTIONS[kind]()) if kind in _SECTIONS else []
    return page.partition(HEADING)[0] + ("\n".join([HEADING, *lines]) + "\n" if lines else "")


def main() -> None:
    for path in sorted(PAGES.glob("*.md")):
        if path.stem != "README":
            page = path.read_text(encoding="utf-8")
            path.write_text(rewritten(page, path.stem), encoding="utf-8")


def _tsuruoka(wanted: Callable[[str], bool]) -> Iterator[str]:
    """Rows of Tsuruoka's Table 1: with our defaults, and with the penalty and the rates chosen as the paper did."""
    result = _read("tsuruoka") or {}
    for part, how in (("untuned", "not tuned"), ("tuned", "tuned as in the paper")):
        if part not in result:
            continue
        run = result[part]
        yield f"CoNLL-2000 chunking, `l1` {run['l1']:g}, {how} ({_source('tsuruoka', result, run)}):"
        yield ""
        yield "| | passes | objective | active features | seconds | F1 |"
        yield "|---|---|---|---|---|---|"
        for name, row in run["table"].items():
            if wanted(name):
                cells = f"{row['passes']} | {row['objective']:,.1f} | {row['active_features']:,}"
                yield f"| {name} | {cells} | {row['seconds']:.1f} | {row['f1']:.2f} |"
        yield ""


def _line_search() -> Iterator[str]:
    """Zhou's figures: how far the ends of runs lie apart."""
    for corpus, result in _zhou():
        grid = result.get("grid", {"curves": {"none": {}}})
        settings = len(grid["curves"]["none"])
        if settings >= FIGURES:
            spread = grid["spread"]
            yield (
                f"{corpus}, {settings} first rates and factors: the objectives after the last pass lie "
                f"{spread['none']:,.0f} apart, with the heuristic line search {spread['heuristic']:,.0f} "
                f"({_source(result['name'], result, grid)})."
            )
            yield ""


def _two_stage() -> Iterator[str]:
    for corpus, result in _zhou():
        if "two_stage" in result:
            run = result["two_stage"]
            part, last = run["part_of_time"], run["rounds"][-1]
            yield f"{corpus}, `l1` {result['l1']:g} ({_source(result['name'], result, run)}):"
            yield ""
            yield "| | passes | objective | active features | seconds |"
            yield "|---|---|---|---|---|"
            for name in ("OWL-QN", "two-stage"):
                row = last[name]
                cells = f"{row['passes']} | {row['objective']:,.1f} | {row['active_features']:,}"
                yield f"| {name} | {cells} | {row['seconds']:.1f} |"
            yield ""
            if part is not None:
                yield f"Within 0.1 % of OWL-QN's objective in {part:.2f} of its time."
                yield ""


def _against_crfsuite(penalty: str) -> Iterator[str]:
    """The same objective by python-crfsuite: the parts of the benchmark that were run."""
    result = _read("quasi_newton") or {}
    if row := result.get("optimum", {}).get(penalty):
        source = _source("quasi_newton", result, result["optimum"])
        yield f"CoNLL-2000, the features of CRFsuite, one thread ({source}):"
        yield ""
        yield "| | iterations | objective | seconds |"
        yield "|---|---|---|---|"
        for name in ("python-crfsuite", "tagsmith"):
            end = row[name]
            yield f"| {name} | {end['iterations']} | {end['objective']:,.2f} | {end['seconds']:.1f} |"
        yield ""
    if penalty == "l1" and (each := result.get("iterations")):
        source = _source("quasi_newton", result, each)
        yield (
            f"An iteration is {each['times_faster_on_1_thread']:g} times faster than CRFsuite's on one thread and "
            f"{each['times_faster_on_2_threads']:g} times on two ({source})."
        )
        yield ""


def _zhou() -> Iterator[tuple[str, dict[str, Any]]]:
    for corpus, title in (("conll2000", "CoNLL-2000 chunking"), ("pku", "PKU word segmentation")):
        result = _read(f"zhou_{corpus}")
        if result is not None:
            yield title, {**result, "name": f"zhou_{corpus}"}


def _read(name: str) -> dict[str, Any] | None:
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _source(name: str, result: dict[str, Any], part: dict[str, Any]) -> str:
    """Where the figures are from, and how busy the machine was: seconds mean little without."""
    load = part.get("measured", result["machine"])["load_average"][1]
    cores = result["machine"]["cores"]
    return f"[{name}.json](../../benchmarks/results/{name}.json), {cores} cores with a load of {load:.1f}"


def _stripped(section: Callable[[], Iterator[str]]) -> Callable[[], Iterator[str]]:
    """Without the blank line at the end."""

    def lines() -> Iterator[str]:
        made = list(section())
        yield from made[:-1] if made and not made[-1] else made

    return lines


def _sgd_l1() -> Iterator[str]:
    yield from _tsuruoka(lambda name: name.startswith("SGD"))
    yield from _line_search()


def _owlqn() -> Iterator[str]:
    yield from _tsuruoka(lambda name: name == "OWL-QN")
    yield from _against_crfsuite("l1")


_SECTIONS: dict[str, Callable[[], Iterator[str]]] = {
    "sgd-l1": _stripped(_sgd_l1),
    "owlqn": _stripped(_owlqn),
    "lbfgs": _stripped(lambda: _against_crfsuite("l2")),
    "two-stage": _stripped(_two_stage),
}


if __name__ == "__main__":
    main()
