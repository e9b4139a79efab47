"""Jobs with dependency trees: evaluate, tag, rank, compare and tune with parsers, and what is refused when posted."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus import report
from tagsmith.core.corpus.corpus import Corpus, Trees
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.evaluate import trees as tree_scores
from tagsmith.core.jobs import jobs, kinds, submit
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline import parsing
from tagsmith.core.registry import evaluations, models
from tagsmith.core.store import blobs, corpora
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.ids import new_id
from tagsmith.core.store.states import State
from tagsmith.worker import run
from tests import parsers
from tests.app import samples
from tests.app.samples import NEW
from tests.worker.processes import Stack
from tests.worker.test_resume import context_of
from tests.worker.test_train import open_stack

COLUMNS = parsers.COLUMNS.split(",")


@pytest.fixture(scope="module")
def stack(sqlite_url: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack with two parsers, the second without relations, and a tagger. No job changes what another one reads."""
    folder = tmp_path_factory.mktemp("stack")
    for made in open_stack(sqlite_url, redis_url, folder):
        with made.db.write() as conn:
            models.publish(conn, "parser", NEW, [parsers.model_file()])
            models.publish(conn, "parser", NEW, [parsers.model_file(relations=False)])
            models.publish(conn, "tagger", NEW, [samples.model_file("v1", folder / "tagger")])
        yield made


def add(stack: Stack, text: bytes, name: str = "conllu", **options: Any) -> CorpusRow:
    reader = formats.reader(name, max_line_bytes=1 << 16, options=options)
    reader.feed(text)
    corpus = reader.finish()
    found = report.report(corpus, 0)
    row = CorpusRow(
        id=new_id("crp"),
        name="trees",
        format=name,
        sentences=corpus.sentences,
        tokens=corpus.tokens,
        columns=[column.name for column in corpus.columns],
        labels=corpus.label_names,
        sha256="",
        size_bytes=len(text),
        report=asdict(found),
        created_at=datetime.now(UTC),
        options=reader.options.model_dump(mode="json"),
    )
    with stack.db.write() as conn:
        return corpora.insert(conn, row, [text])


@pytest.fixture(scope="module")
def trees(stack: Stack) -> CorpusRow:
    return add(stack, parsers.text(40, 2), columns=parsers.COLUMNS, label="tree")


def posted(stack: Stack, body: dict[str, Any]) -> JobRow:
    """Post a job as the API does."""
    spec = kinds.parse_job(body)
    with stack.db.write() as conn:
        return submit.post(conn, spec, stack.config)


def ran(stack: Stack, body: dict[str, Any]) -> dict[str, Any]:
    job = posted(stack, body)
    run.run_job(context_of(stack), job.id)
    ended = stack.job(job.id)
    assert ended.state is State.SUCCEEDED, ended.error
    assert ended.result is not None
    return {**ended.result, "id": job.id}


def output(stack: Stack, result: dict[str, Any]) -> bytes:
    return b"".join(blobs.stream(stack.db, jobs.output_id(result["id"])))


def read(stack: Stack, row: CorpusRow) -> Corpus:
    return corpora.load(stack.db, row, max_line_bytes=1 << 16, max_text_bytes=1 << 24)


def parsed(stack: Stack, row: CorpusRow, folder: Path, version: int = 1) -> Trees:
    with stack.db.read() as conn:
        (folder / "model").write_bytes(b"".join(models.artifact(conn, "parser", version)))
    return finished(parsing.predicted_trees(Tagger.open(folder / "model"), read(stack, row)))


def names_of(found: Trees) -> list[str]:
    names = found.relations.vocabulary.strings()
    return [names[i] for i in found.relations.ids.tolist()]


def table_of(kind: str, result: dict[str, Any]) -> list[dict[str, str]]:
    make = kinds.known()[kind].table
    assert make is not None
    return list(csv.DictReader(io.StringIO(make(result))))


def test_an_evaluation_scores_heads_and_relations_and_compares_versions(
    stack: Stack, trees: CorpusRow, tmp_path: Path
) -> None:
    result = ran(stack, {"kind": "evaluate", "models": ["parser:1", "parser:2"], "corpus": trees.id})
    first, second = result["models"]
    corpus, found = read(stack, trees), parsed(stack, trees, tmp_path)
    assert corpus.trees is not None
    heads, relations = corpus.trees.heads == found.heads, names_of(corpus.trees)
    metrics = first["metrics"]
    assert (first["metric"], first["score"]) == ("uas", metrics["uas"])
    assert metrics["uas"] == pytest.approx(100 * heads.mean())
    right = [bool(h) and a == b for h, a, b in zip(heads, relations, names_of(found), strict=True)]
    assert metrics["las"] == pytest.approx(100 * sum(right) / len(right))
    words = ~tree_scores.punctuation(corpus.columns[0])
    assert metrics["uas_without_punctuation"] == pytest.approx(100 * heads[words].mean())
    assert first["types"]["nsubj"]["support"] == relations.count("nsubj")
    # The second one has no relations.
    assert second["metrics"]["las"] is None
    assert second["metrics"]["uas"] > 50
    assert second["types"] == {}
    (pair,) = result["pairs"]
    assert pair["bootstrap"]["difference"] == pytest.approx(second["score"] - first["score"])
    wrong = first["wrong_sentences"][0]
    begin, end = corpus.offsets[wrong["index"] : wrong["index"] + 2].tolist()
    assert wrong["heads"] == corpus.trees.heads[begin:end].tolist()
    assert wrong["predicted_heads"] == found.heads[begin:end].tolist()
    assert wrong["predicted_relations"] == names_of(found)[begin:end]
    assert (wrong["heads"], wrong["relations"]) != (wrong["predicted_heads"], wrong["predicted_relations"])
    assert all(pair["gold"] and pair["predicted"] for pair in first["confusion"])
    rows = table_of("evaluate", result)
    assert [row["uas"] for row in rows] == [str(each["score"]) for each in (first, second)]
    assert rows[1]["las"] == ""
    with stack.db.read() as conn:
        (stored,) = evaluations.of_versions(conn, "parser", [1])[1]
    assert (stored.metric, stored.score) == ("uas", first["score"])


def test_a_corpus_is_parsed_into_its_own_format(stack: Stack, trees: CorpusRow, tmp_path: Path) -> None:
    result = ran(stack, {"kind": "tag", "model": "parser:1", "corpus": trees.id})
    assert (result["format"], result["tokens"]) == ("conllu", trees.tokens)
    written = formats.read(
        [output(stack, result)],
        "conllu",
        max_line_bytes=1 << 16,
        options={"columns": parsers.COLUMNS, "label": "tree"},
    )
    expected = parsed(stack, trees, tmp_path)
    assert written.trees is not None
    assert written.trees.heads.tolist() == expected.heads.tolist()
    assert names_of(written.trees) == names_of(expected)


def test_a_corpus_without_trees_is_parsed_into_json_lines_and_other_formats(
    stack: Stack, tmp_path: Path
) -> None:
    rows = [
        ["the", "the", "DET", "_"],
        ["offer", "offer", "NOUN", "Number=Sing"],
        ["appeared", "appear", "VERB", "_"],
    ]
    text = json.dumps({"tokens": rows}).encode()
    row = add(stack, text, "ndjson", labelled=False)
    body = {"kind": "tag", "model": "parser:1", "corpus": row.id}
    line = json.loads(output(stack, ran(stack, body)))
    assert line["tokens"] == rows
    assert line["heads"] == parsed(stack, row, tmp_path).heads.tolist()
    assert line["relations"][2] == "root"
    # Its columns have no names, so that they have to be given.
    options = {"columns": parsers.COLUMNS}
    written = output(stack, ran(stack, {**body, "format": "conllu", "options": options}))
    assert written.decode().splitlines()[1].split("\t")[:6] == [
        "2",
        "offer",
        "offer",
        "NOUN",
        "_",
        "Number=Sing",
    ]


def test_a_corpus_of_one_format_is_written_in_the_other_with_the_same_fields(
    stack: Stack, trees: CorpusRow
) -> None:
    data = output(
        stack, ran(stack, {"kind": "tag", "model": "parser:1", "corpus": trees.id, "format": "conllx"})
    )
    first = data.decode().splitlines()[0].split("\t")
    options = {"columns": "form,lemma,cpostag,feats"}
    corpus = formats.read([data], "conllx", max_line_bytes=1 << 16, options=options)
    assert corpus.sentences == trees.sentences
    assert first[3] != "_"


@pytest.mark.parametrize("per_token", [True, False])
def test_the_least_probable_trees_are_listed_first(stack: Stack, trees: CorpusRow, per_token: bool) -> None:
    body = {"kind": "rank", "model": "parser:1", "corpus": trees.id, "top": 5, "per_token": per_token}
    result = ran(stack, body)
    assert (result["format"], result["sentences"]) == ("conllu", 5)
    text = output(stack, result).decode()
    scores = [float(line.split("= ")[1]) for line in text.splitlines() if line.startswith("# score")]
    assert scores == sorted(scores)
    assert len(scores) == 5
    assert scores[-1] <= 0
    options = {"columns": parsers.COLUMNS, "label": "tree"}
    listed = formats.read([text.encode()], "conllu", max_line_bytes=1 << 16, options=options)
    corpus = read(stack, trees)
    index = int(text.split("# index = ")[1].split("\n")[0])
    length = int(corpus.offsets[index + 1] - corpus.offsets[index])
    words = corpus.columns[0]
    assert [listed.columns[0].vocabulary[i] for i in listed.columns[0].ids[:length].tolist()] == [
        words.vocabulary[i] for i in words.ids[corpus.offsets[index] : corpus.offsets[index + 1]].tolist()
    ]


def test_trainers_are_compared_by_uas(stack: Stack, trees: CorpusRow) -> None:
    body = {
        "kind": "compare",
        "corpus": trees.id,
        "dev": {"fraction": 0.2},
        "features": parsers.FEATURES[parsers.COLUMNS],
        "trainers": [parsers.TRAINER, {**parsers.TRAINER, "passes": 1, "name": "short"}],
    }
    result = ran(stack, body)
    assert result["score"] == "uas"
    for row in result["table"]:
        assert row["score"] == row["uas"] >= row["las"] > 20
        assert "f1" not in row
    assert [row["uas"] for row in table_of("compare", result)] == [str(row["uas"]) for row in result["table"]]
    plot = kinds.known()["compare"].plot
    assert plot is not None
    assert "UAS on dev" in plot(result)


@pytest.mark.parametrize("scored", ["folds", "dev"])
def test_a_search_scores_by_uas_and_trains_with_the_best(stack: Stack, trees: CorpusRow, scored: str) -> None:
    body = {
        "kind": "tune",
        "corpus": trees.id,
        **({"folds": 2} if scored == "folds" else {"dev": {"corpus": trees.id}}),
        "features": parsers.FEATURES[parsers.COLUMNS],
        "trainer": parsers.TRAINER,
        "search": {"kind": "grid", "fields": {"trainer.passes": [1, 3]}},
        "train": {"model": f"tuned-{scored}"},
    }
    result = ran(stack, body)
    assert result["score"] == "uas"
    assert len(result["table"][0]["scores"]) == (2 if scored == "folds" else 1)
    assert result["best"]["mean"] == max(row["mean"] for row in result["table"]) > 50
    assert result["trained"]["version"] == 1
    if scored == "dev":
        assert result["trained"]["metrics"]["dev"]["score"] == "uas"


def test_the_same_search_gives_the_same_table(stack: Stack, trees: CorpusRow) -> None:
    body = {
        "kind": "tune",
        "corpus": trees.id,
        "folds": 2,
        "features": parsers.FEATURES[parsers.COLUMNS],
        "trainer": parsers.TRAINER,
        "search": {"kind": "grid", "fields": {"features.cutoff": [1, 2]}},
    }
    tables = [[row["scores"] for row in ran(stack, body)["table"]] for _ in range(2)]
    assert tables[0] == tables[1]


@pytest.mark.parametrize(
    ("changes", "pointer", "code", "reason"),
    [
        ({"kind": "evaluate", "models": ["tagger:1"]}, "/models/0", "structures_differ", "gives tags"),
        ({"kind": "tag", "model": "parser:1", "format": "conll"}, "/format", "invalid_spec", "conllu"),
        ({"kind": "tag", "model": "parser:1", "decode": "posterior"}, "/decode", "invalid_spec", "Leave"),
        ({"kind": "tag", "model": "parser:1", "valid": "iob2"}, "/valid", "invalid_spec", "Leave"),
        ({"kind": "rank", "model": "parser:1", "by": "entropy"}, "/by", "invalid_spec", "Choose probability"),
        ({"kind": "rank", "model": "parser:1", "by": "margin"}, "/by", "invalid_spec", "Choose probability"),
    ],
)  # fmt: skip
def test_what_does_not_fit_a_parser_is_refused_when_it_is_posted(
    stack: Stack, trees: CorpusRow, changes: dict[str, Any], pointer: str, code: str, reason: str
) -> None:
    with pytest.raises(Invalid) as refused:
        posted(stack, {"corpus": trees.id, **changes})
    assert refused.value.code == code
    (fault,) = refused.value.faults
    assert fault.pointer == pointer
    assert reason in fault.reason


def test_a_parser_is_not_scored_on_labels_and_labels_are_no_dev_set_of_trees(
    stack: Stack, trees: CorpusRow
) -> None:
    labels = add(stack, parsers.text(5, 3), columns="form,lemma,xpos,feats", label="upos")
    with pytest.raises(Invalid) as refused:
        posted(stack, {"kind": "evaluate", "models": ["parser:1"], "corpus": labels.id})
    assert (refused.value.code, refused.value.faults[0].pointer) == ("structures_differ", "/models/0")
    body = {
        "kind": "compare",
        "corpus": trees.id,
        "dev": {"corpus": labels.id},
        "trainers": [parsers.TRAINER],
    }
    with pytest.raises(Invalid) as refused:
        posted(stack, body)
    assert (refused.value.code, refused.value.faults[0].pointer) == ("corpora_differ", "/dev/corpus")
    assert "labels" in refused.value.faults[0].reason


def test_columns_without_names_cannot_be_listed_with_trees(stack: Stack) -> None:
    text = json.dumps({"tokens": [["a", "b", "c", "d"]]}).encode()
    row = add(stack, text, "ndjson", labelled=False)
    with pytest.raises(Invalid, match="cannot be written with trees"):
        posted(stack, {"kind": "rank", "model": "parser:1", "corpus": row.id})
