"""The figures of the README and of why-a-crf.md are those of benchmarks/results."""

import json
from typing import Any

from tests.docs.pages import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
WHY = (ROOT / "docs" / "why-a-crf.md").read_text(encoding="utf-8")
#: Corpora of the README, and the tasks of the presets that were measured on them.
ROWS = {
    "CoNLL-2002 names, Spanish": ("ner-spanish", "F1"),
    "CoNLL-2002 names, Dutch": ("ner-dutch", "F1"),
    "UD English EWT, parts of speech": ("pos-ewt", "accuracy"),
    "GENIA, parts of speech": ("pos-genia", "accuracy"),
}


def results(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())
    return found


def rounded(tokens_per_second: float) -> str:
    return f"{round(tokens_per_second, -3):,} tokens"


def test_the_readme_has_the_figures_of_chunking() -> None:
    found = results("chunking")
    for row, name, tagging in (
        ("CoNLL-2000 chunking", "tagsmith", "tagsmith"),
        (
            "the same with python-crfsuite, `l2sgd`, in the same run",
            "python-crfsuite l2sgd",
            "python-crfsuite",
        ),
    ):
        seconds = found["file_to_model_30_passes"][name]["seconds_median"]
        speed = rounded(found["tagging"][tagging]["tokens_per_second"])
        assert f"| {row} | F1 {found['test'][name]['f1']:.2f} | {seconds:.1f} s | {speed}/s |" in README


def test_the_readme_has_the_figures_of_presets() -> None:
    found = results("presets")
    for row, (task, metric) in ROWS.items():
        score = found[task]["test"][metric.lower()]
        assert f"| {row} | {metric} {score:.2f} | {found[task]['train_seconds']:.1f} s | |" in README


def test_why_a_crf_has_measured_figures() -> None:
    chunking, presets, tagging = results("chunking"), results("presets"), results("tagging")
    speed = chunking["tagging"]["tagsmith"]["tokens_per_second"]
    requests = tagging["one_sentence_of_25_tokens"]["requests_per_second"]["tagsmith"]
    for figure in (
        f"{rounded(speed)} per second",
        f"about {round(25e6 / speed):d} microseconds",
        f"{requests:,} requests per second",
        f"CoNLL-2000 in {chunking['file_to_model_30_passes']['tagsmith']['seconds_median']:.1f} s",
        f"CoNLL-2002 Spanish in {presets['ner-spanish']['train_seconds']:.1f} s",
        f"{presets['chunking']['active_features']:,} for chunking",
        f"{presets['ner-spanish']['active_features']:,} for Spanish names",
        f"F1 {presets['chunking']['test']['f1']:.2f} on CoNLL-2000",
        f"{presets['ner-spanish']['test']['f1']:.2f} and {presets['ner-dutch']['test']['f1']:.2f} on CoNLL-2002",
        f"accuracy {presets['pos-genia']['test']['accuracy']:.2f} on GENIA",
    ):
        assert figure in WHY, figure


def test_the_first_screen_names_the_demo_and_the_tests() -> None:
    first = README.splitlines()[:40]
    assert any(line.startswith("make demo") for line in first)
    assert any(line.startswith("make test") for line in first)
    assert any("docs/page.png" in line for line in first)
