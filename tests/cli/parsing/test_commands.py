"""Commands with a parser, from a file and on a server: tag, explain, eval, rank."""

import json
from pathlib import Path

import pytest

from tagsmith.core.model.tagger import Tagger
from tests import parsers
from tests.cli.command import CommandRunner

TEXT = "the offer appeared. The order appeared."
CONLLU = (
    "# sent_id = 1\n1-2\ttheoffer\t_\t_\t_\t_\t_\t_\t_\t_\n1\tthe\tthe\tDET\tDT\t_\t_\t_\t_\tSpaceAfter=No\n"
    "2\toffer\toffer\tNOUN\tNN\tNumber=Sing\t_\t_\t_\t_\n3\tappeared\tappear\tVERB\tVBD\t_\t_\t_\t_\t_\n\n"
    "1\tit\tit\tPRON\tPRP\t_\t9\twrong\t_\t_\n2\tappeared\tappear\tVERB\tVBD\t_\t_\t_\t_\t_\n"
)
ROWS = [
    [
        ["the", "the", "DET", "_"],
        ["offer", "offer", "NOUN", "Number=Sing"],
        ["appeared", "appear", "VERB", "_"],
    ],
    [["it", "it", "PRON", "_"], ["appeared", "appear", "VERB", "_"]],
]
Model = dict[str, list[str]]


def expected(folder: Path, name: str = "columns") -> list[tuple[int, str]]:
    rows = ROWS if name == "columns" else [[row[0] for row in each] for each in ROWS]
    parsed = Tagger.open(folder / f"{name}.tagsmith").parse(rows)
    return [pair for each in parsed for pair in zip(each.heads, each.relations, strict=True)]


def fields(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]


def test_conllu_keeps_its_lines_and_gets_heads_and_relations(
    run: CommandRunner, model: Model, folder: Path
) -> None:
    out = run.ok("tag", *model["columns"], stdin=CONLLU)
    given = CONLLU.splitlines()
    assert [line for line in out.splitlines() if not line or line.startswith(("#", "1-2"))] == [
        *given[:2],
        "",
    ]
    rows = [row for row in fields(out) if "-" not in row[0]]
    assert [(int(row[6]), row[7]) for row in rows] == expected(folder)
    before = [row for row in fields(CONLLU) if "-" not in row[0]]
    assert [row[:6] + row[8:] for row in rows] == [row[:6] + row[8:] for row in before]
    assert len(out.splitlines()) == len(given)


def test_conllx_is_read_without_the_numbers_of_its_words(
    run: CommandRunner, model: Model, folder: Path
) -> None:
    text = CONLLU.split("\n", 2)[2].replace("Number=Sing", "Number=Sing|id=7").replace("SpaceAfter=No", "_")
    rows = fields(run.ok("tag", *model["columns"], stdin=text))
    assert [(int(row[6]), row[7]) for row in rows] == expected(folder)
    assert rows[1][5] == "Number=Sing|id=7"


def test_columns_get_a_head_and_a_relation(run: CommandRunner, model: Model, folder: Path) -> None:
    text = "".join("".join("\t".join(row) + "\n" for row in each) + "\n" for each in ROWS)
    out = run.ok("tag", *model["columns"], stdin=text)
    assert [(int(row[4]), row[5]) for row in fields(out)] == expected(folder)
    probable = fields(run.ok("tag", *model["columns"], "--probabilities", stdin=text))
    assert all(0 < float(row[6]) <= 1 for row in probable)
    written = fields(run.ok("tag", *model["columns"], "--format", "conllu", stdin=text))
    assert [row[:6] for row in written][1] == ["2", "offer", "offer", "NOUN", "_", "Number=Sing"]


def test_words_by_line_are_parsed_by_a_parser_of_words(
    run: CommandRunner, model: Model, folder: Path
) -> None:
    text = "".join("".join(row[0] + "\n" for row in each) + "\n" for each in ROWS)
    out = run.ok("tag", *model["words"], "--input", "columns", stdin=text)
    assert [
        (int(row[-2]), row[-1]) for row in (line.split() for line in out.splitlines() if line)
    ] == expected(folder, "words")


def test_text_is_written_as_conllu_sentence_by_sentence(run: CommandRunner, model: Model) -> None:
    out = run.ok("tag", *model["words"], stdin=f"{TEXT}\nit appeared.\n")
    sentences = [fields(each) for each in out.strip().split("\n\n")]
    assert [[row[1] for row in each] for each in sentences] == [
        ["the", "offer", "appeared", "."], ["The", "order", "appeared", "."], ["it", "appeared", "."],
    ]  # fmt: skip
    assert all([row[0] for row in each] == [str(i + 1) for i in range(len(each))] for each in sentences)
    assert all(sum(row[6] == "0" for row in each) == 1 for each in sentences)
    assert "# text = it appeared.\n" in out


def test_json_has_the_names_of_the_api(run: CommandRunner, model: Model) -> None:
    out = run.ok("tag", *model["words"], "--format", "json", "--probabilities", stdin=TEXT + "\n")
    found = json.loads(out)
    assert set(found) == {"text", "tokens", "heads", "relations", "marginals", "relation_marginals"}
    assert max(found["heads"]) > 4  # numbers of tokens of the text
    lines = '{"tokens": ["it", "appeared"], "id": 7}\n{"text": "it appeared."}\n'
    tokens, text = map(json.loads, run.ok("tag", *model["words"], stdin=lines).splitlines())
    assert (tokens["id"], len(tokens["heads"]), len(tokens["relations"])) == (7, 2, 2)
    assert (text["tokens"], len(text["heads"])) == (["it", "appeared", "."], 3)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--format", "spans"], "is a parser. Its trees cannot be written as spans: use conllu."),
        (["--format", "tags"], "cannot be written as tags"),
        ([], "needs 4 columns per token"),
    ],
)
def test_what_does_not_fit_a_parser_is_answered_by_a_sentence(
    run: CommandRunner, model: Model, arguments: list[str], says: str
) -> None:
    ran = run("tag", *model["columns" if not arguments else "words"], *arguments, stdin=TEXT + "\n")
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


def test_an_arc_is_explained(run: CommandRunner, model: Model) -> None:
    out = run.ok("explain", *model["words"], TEXT, "--token", "offer")
    first, *rest = out.splitlines()
    assert first.startswith("offer  head  appeared ")
    assert any(line.startswith("offer  relation  nsubj ") for line in rest)
    assert any("modifier.form" in line for line in rest)
    assert "The text has no token" in run("explain", *model["words"], TEXT, "--token", "nobody").err


def test_an_arc_is_explained_with_the_columns_that_a_parser_needs(run: CommandRunner, model: Model) -> None:
    out = run.ok("explain", *model["columns"], "--token", "offer", stdin=CONLLU)
    assert out.splitlines()[0].startswith("offer  head  appeared ")
    raw = json.loads(run.ok("explain", *model["columns"], "--json", stdin=CONLLU))
    assert raw["tokens"] == [["the", "offer", "appeared"], ["it", "appeared"]]
    assert [(each["sentence"], each["token"]) for each in raw["arcs"]] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 1),
    ]
    ran = run("explain", *model["columns"], TEXT)
    assert (ran.code, "Give them by lines, or CoNLL-U" in ran.err) == (2, True)


def test_parsers_are_scored_with_the_columns_that_they_need(
    run: CommandRunner, model: Model, folder: Path
) -> None:
    out = run.ok("eval", *model["columns"], folder / "trees.conllu")
    table, totals = out.splitlines(), [line for line in out.splitlines() if line.startswith("UAS")]
    assert any(line.startswith("nsubj") for line in table)
    assert "LAS" in totals[0]
    assert "punctuation left out" in totals[1]
    result = json.loads(run.ok("eval", *model["columns"], folder / "trees.conllu", "--json"))
    result = result.get("result") or result
    assert result["models"][0]["metrics"]["score"] == "uas"
    assert f"UAS {result['models'][0]['metrics']['uas']:.2f}" in totals[0]


def test_the_least_sure_sentences_are_listed_as_conllu(
    run: CommandRunner, model: Model, folder: Path
) -> None:
    out = run.ok("rank", *model["columns"], folder / "trees.conllu", "--top", "3")
    assert out.count("# score = -") == 3
    assert all(row[3] != "_" for row in fields(out))
    ran = run("rank", *model["columns"], folder / "trees.conllu", "--by", "entropy")
    assert ran.code == 2
    assert "Choose probability" in ran.err


def test_the_model_is_shown_and_text_options_are_those_of_tags(run: CommandRunner, folder: Path) -> None:
    out = run.ok("models", "show", "--local", folder / "columns.tagsmith")
    assert "nsubj" in out
    assert len(parsers.COLUMNS.split(",")) == 4
    assert "4 columns" in out
