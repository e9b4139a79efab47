"""Every preset on a corpus of its task, with the default trainer and default settings.

    python -m benchmarks.presets --data ../shared/data [--task ner-spanish]

Trained on the training part only, and scored once, at the end, on the official test part (test B of CoNLL-2002). The
score is the F1 of chunks by the rules of conlleval, or the accuracy for parts of speech. No lexicons. The preset
`segmentation` has its own benchmark.
"""

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import common, learners
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.evaluate.spans import evaluate
from tagsmith.core.features import preview
from tagsmith.core.features.presets import Preset
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.model.model import SparseModel
from tagsmith.core.model.tagger import Coded, Tagger
from tagsmith.core.pipeline import warm

PAGE = Path(__file__).parents[1] / "docs" / "presets.md"


@dataclass(frozen=True)
class Task:
    """A preset, and the corpus it is measured on."""

    preset: Preset
    corpus: str
    parts: Callable[[Path], tuple[Corpus, Corpus]]  # training and test
    score: str  # "f1" or "accuracy"


def _columns(folder: str, train: str, test: str) -> Callable[[Path], tuple[Corpus, Corpus]]:
    def parts(data: Path) -> tuple[Corpus, Corpus]:
        texts = (common.read(data / folder / name) for name in (train, test))
        return learners.corpus(next(texts)), learners.corpus(next(texts))

    return parts


def _ewt(data: Path) -> tuple[Corpus, Corpus]:
    def read(part: str) -> Corpus:
        reader = formats.reader("conllu", max_line_bytes=learners.MAX_LINE_BYTES)
        reader.feed(common.read(data / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu"))
        return reader.finish()

    return read("train"), read("test")


TASKS = {
    "chunking": Task("chunking", "CoNLL-2000", _columns("conll2000", "train.txt", "test.txt"), "f1"),
    "ner-spanish": Task("ner", "CoNLL-2002 Spanish", _columns("conll2002", "esp.train", "esp.testb"), "f1"),
    "ner-dutch": Task("ner", "CoNLL-2002 Dutch", _columns("conll2002", "ned.train", "ned.testb"), "f1"),
    "pos-ewt": Task("pos", "UD English EWT, universal tags", _ewt, "accuracy"),
    "pos-genia": Task("pos", "GENIA", _columns("genia_pos", "train.tsv", "test.tsv"), "accuracy"),
    "generic-chunking": Task("generic", "CoNLL-2000", _columns("conll2000", "train.txt", "test.txt"), "f1"),
    "generic-spanish": Task(
        "generic", "CoNLL-2002 Spanish", _columns("conll2002", "esp.train", "esp.testb"), "f1"
    ),
}


def measure(task: Task, data: Path) -> dict[str, Any]:
    train, test = task.parts(data)
    spec = FeatureSpec(preset=task.preset)
    counts = preview.count(spec.resolve(train.names), train)
    result = learners.trained({"kind": "sgd-l1"}, spec, train, objective="estimate")
    return {
        "preset": task.preset,
        "corpus": task.corpus,
        "score": task.score,
        "test": scores(result.model, test),
        "templates": len(counts.templates),
        "attributes": counts.attributes,
        "parameters": counts.parameters,
        "active_features": result.active_features,
        "passes": result.passes,
        "train_seconds": round(result.train_seconds, 1),
    }


def scores(model: SparseModel, test: Corpus) -> dict[str, float]:
    assert test.labels is not None
    names = list(model.labels)
    known = {name: i for i, name in enumerate(dict.fromkeys([*names, *test.labels.vocabulary.strings()]))}
    of_label = np.array([known[name] for name in test.labels.vocabulary.strings()], np.int32)
    gold = of_label[test.labels.ids]
    found = Tagger(model).decode(Coded(model.coder.code_corpus(test), test.offsets))
    metrics = evaluate(list(known), gold, found, test.offsets)
    return {"f1": round(metrics.f1, 2), "accuracy": round(metrics.accuracy, 2)}


def rewritten(page: str, result: dict[str, Any]) -> str:
    """Return the page of presets with updated figures at the end of each section that has recorded ones."""
    sections = re.split(r"(?m)^(?=## )", page)
    return (
        "".join(
            [
                sections[0],
                *(_with_table(section, result) for section in sections[1:]),
            ]
        ).rstrip("\n")
        + "\n"
    )


def _with_table(section: str, result: dict[str, Any]) -> str:
    name = section.partition("`")[2].partition("`")[0]
    rows = [row for row in result.values() if row.get("preset") == name]
    if not rows:
        return section
    lines = [
        f"| {row['corpus']} | {_said(row)} | {row['templates']} | {row['attributes']:,} | {row['parameters']:,} | "
        f"{row['active_features']:,} | {row['train_seconds']:.0f} |"
        for row in rows
    ]
    head = "| corpus | test | templates | attributes | weights | of them not zero | seconds |"
    text = section.partition("\n|")[0].rstrip()
    return "\n".join([text, "", head, "|" + "---|" * 7, *lines, "", ""])


def _said(row: dict[str, Any]) -> str:
    if row["score"] == "accuracy":
        return f"accuracy {row['test']['accuracy']:.2f}"
    return f"F1 {row['test']['f1']:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    parser.add_argument("--task", choices=("all", *TASKS), default="all", help="keep the others' results")
    options = parser.parse_args()
    warm.training()
    result = common.recorded("presets")
    for name in TASKS if options.task == "all" else [options.task]:
        moment = common.moment()
        result[name] = {"measured": moment, **measure(TASKS[name], options.data)}
        print(name, result[name], flush=True)
        result = {each: result[each] for each in TASKS if each in result}
        common.record("presets", result)
        PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8"), result), encoding="utf-8")


if __name__ == "__main__":
    main()
