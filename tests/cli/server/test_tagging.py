"""`tagsmith tag` against a server: the same input and output as with --local."""

import json
import re
from pathlib import Path

import pytest

from tagsmith.cli import tagged
from tests.cli.command import CommandRunner, people

TEXT = "Ada Lovelace wrote to Charles Babbage in London."


SAME = {
    "ner": (people(), f"{TEXT}\r\n{TEXT} Grace met Alan.\n\n"),
    # The tokenizer treats control and format characters as blanks.
    "segmentation": ("我们 在 上海\n上海 很 大\n" * 10, "我们在上海\n上\u200b海\x01很大\n我们很大\n"),
}


@pytest.mark.parametrize("preset", SAME)
def test_local_and_the_service_write_the_same_bytes(run: CommandRunner, preset: str, tmp_path: Path) -> None:
    corpus, text = SAME[preset]
    data, model = tmp_path / "data", f"cli-same-{preset}"
    data.write_text(corpus)
    options = ["--preset", preset, "--passes", "3", "--seed", "7", "--dev", "0.1"]
    if preset == "segmentation":
        options += ["--format", "segmented"]
    run.ok("train", data, "--model", model, *options)
    run.ok("models", "export", f"{model}:1", "-o", tmp_path / "served")
    run.ok("train", "--local", data, "--model", tmp_path / "local", *options)
    assert (tmp_path / "served").read_bytes() == (tmp_path / "local").read_bytes()
    for arguments in (
        *(["-f", name] for name in tagged.FORMATS),
        ["--json"],
        ["-f", "json", "--no-probabilities"],
    ):
        served = run.ok("tag", model, *arguments, stdin=text)
        assert run.ok("tag", "--local", tmp_path / "local", *arguments, stdin=text) == served


COLUMNS = [
    "Ada\nwrote\nto\nGrace\n",
    "-DOCSTART- -X-\n\nAda B-PER\n\n\n  \nwrote  O\nto O \n\nGrace B-PER",
    "Ada\tNNP\r\nwrote\tVBD\r\n\r\nNew\u00a0York\tNNP\r\n",
]


CONLLU = """\
# text = Ada Lovelacewrote
1 Ada _ _ _ _ _ _ _ _
2-3 Lovelacewrote _ _ _ _ _ _ _ _
2 Lovelace _ _ _ _ _ _ _ {first}
3 wrote _ _ _ _ _ _ _ X=1{second}
3.1 Grace _ _ _ _ _ _ _ _

"""


def test_columns_come_back_as_they_are_with_tags_from_a_server_and_from_a_file(
    run: CommandRunner, trained: str, tmp_path: Path
) -> None:
    model = tmp_path / "m.tagsmith"
    run.ok("models", "export", f"{trained}:1", "-o", model)
    for text in COLUMNS:
        for options in ([], ["--probabilities"], ["-f", "spans"], ["-f", "json"], ["-f", "conllu"]):
            arguments = ["--input", "columns", *options]
            served = run.ok("tag", f"{trained}:1", *arguments, stdin=text)
            assert run.ok("tag", "--local", model, *arguments, stdin=text) == served
    for text in ("Ada x\nwrote\n", "Ada\nwr\x0bote\n", "Ada\nwr\x1cote\n"):
        for arguments in (["tag", trained], ["tag", "--local", model]):
            assert run(*arguments, "--input", "columns", stdin=text).code == 2, text


def test_conllu_keeps_its_lines_and_shows_words(run: CommandRunner, trained: str, tmp_path: Path) -> None:
    model = tmp_path / "m.tagsmith"
    run.ok("models", "export", f"{trained}:1", "-o", model)
    fields = CONLLU.replace(" _", "\t_").replace(" X", "\tX").replace(" {", "\t{")
    fields = re.sub(r"(?m)^([\d.-]+) ", r"\1\t", fields)
    given = fields.format(first="_", second="")
    wanted = fields.format(first="Tag=I-PER", second="|Tag=O").replace("_\n2-3", "Tag=B-PER\n2-3")
    for arguments in (["tag", f"{trained}:1"], ["tag", "--local", model]):
        assert run.ok(*arguments, stdin=given) == wanted
        assert run.ok(*arguments, "-f", "inline", stdin=given) == "[Ada Lovelace PER] wrote\n"
        assert run.ok(*arguments, "-f", "spans", stdin=given).startswith("Ada Lovelace\tPER\t")
        assert json.loads(run.ok(*arguments, "--json", stdin=given))["tokens"] == ["Ada", "Lovelace", "wrote"]


def test_long_lines_are_sent_in_several_requests(
    run: CommandRunner, trained: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (TEXT + " ") * 48 + "\n"
    assert len(run.ok("tag", trained, "-f", "tags", stdin=text * 600).splitlines()) == 600
    monkeypatch.setattr("tagsmith.cli.inputs.BATCH_CHARACTERS", 1 << 30)
    assert len(run.ok("tag", trained, "-f", "tags", stdin=text * 600).splitlines()) == 600
    ran = run("tag", trained, stdin=text * 20 + (TEXT + " ") * 100_000)
    assert (ran.code, ran.err) == (2, "A line is too long for the server. Split it, or use --local.\n")


def test_the_model_is_checked_before_the_input(run: CommandRunner, trained: str) -> None:
    ran = run("tag", "Ada lives in Paris")
    assert ran.code == 2
    assert "Names use lower-case letters" in ran.err
    assert run("tag", "cli-nobody").code == 2


def test_ndjson_has_the_same_fields_from_a_server_and_from_a_file(
    run: CommandRunner, trained: str, tmp_path: Path
) -> None:
    model = tmp_path / "m.tagsmith"
    run.ok("models", "export", f"{trained}:1", "-o", model)
    text = '{"tokens": ["Ada"], "tags": ["O"], "meta": {}}\n\n{"id": "x", "tokens": ["wrote"]}\n'
    served = [json.loads(line) for line in run.ok("tag", f"{trained}:1", stdin=text).splitlines()]
    local = [json.loads(line) for line in run.ok("tag", "--local", model, stdin=text).splitlines()]
    assert served == local
    assert [line["line"] for line in served] == [1, 2]


def test_json_of_columns_has_tags_and_spans(run: CommandRunner, trained: str) -> None:
    columns = "Yesterday\nGrace\nmet\nAlan\nTuring\n.\n"
    for option in (["--json"], ["-f", "json"]):
        made = json.loads(run.ok("tag", trained, *option, stdin=columns))
        assert made["tags"] == ["O", "B-PER", "O", "B-PER", "I-PER", "O"]
        assert [span["text"] for span in made["spans"]] == ["Grace", "Alan Turing"]


def test_short_lines_are_text_and_the_server_says_what_the_model_takes(
    run: CommandRunner, trained: str, tmp_path: Path
) -> None:
    assert run.ok("tag", trained, "-f", "inline", stdin="Grace met\nAlan Turing\nNice day\n").count("\n") == 3
    data, templates = tmp_path / "cli-two.conll", tmp_path / "templates"
    data.write_text("Ada NNP B-PER\nwrote VBD O\n\n" * 20)
    templates.write_text("U:%x[0,1]\nB\n")
    run.ok("train", data, "--model", "cli-two", "--template", templates)
    assert run.ok("tag", "cli-two", stdin="Ada NNP\nwrote VBD\n") == "Ada NNP B-PER\nwrote VBD O\n"
    ran = run("tag", "cli-two", stdin=TEXT)
    assert (ran.code, ran.err) == (
        2,
        "cli-two needs 2 columns per token; line 1 has 8. To tag raw text, train with --option columns=0.\n",
    )


def test_ndjson_on_a_server_takes_the_tokenizer_and_reports_errors(run: CommandRunner, trained: str) -> None:
    said = run.ok("tag", trained, "--tokenizer", "blanks", stdin=json.dumps({"text": "met Ada."}))
    made = json.loads(said)
    assert (made["tokens"], len(made["tags"]), "spans" in made) == (["met", "Ada."], 2, True)
    lines = [{"id": 1, "tokens": 3}, {"id": 2, "text": TEXT}]
    ran = run("tag", trained, stdin="\n".join(map(json.dumps, lines)))
    assert (ran.code, ran.err) == (1, "1 line was not tagged. See `error` in the output.\n")
    assert ["error" in json.loads(line) for line in ran.out.splitlines()] == [True, False]
    ran = run("tag", trained, "-f", "columns", stdin=json.dumps(lines[1]))
    assert (ran.code, ran.err) == (2, "NDJSON cannot be written as columns. Leave --format out.\n")


def test_columns_and_ndjson_are_tagged_too(run: CommandRunner, trained: str) -> None:
    columns = run.ok("tag", trained, stdin="Yesterday\nGrace\nmet\nAlan\nTuring\n.\n")
    assert columns.splitlines()[1] == "Grace B-PER"
    said = run.ok("tag", trained, stdin=json.dumps({"id": 5, "text": TEXT}))
    made = json.loads(said)
    assert (made["id"], made["spans"][0]["type"]) == (5, "PER")


def test_a_pattern_splits_text_on_a_server(run: CommandRunner, trained: str) -> None:
    pattern = json.dumps({"pattern": "[a-z]+|[A-Z]"})
    made = json.loads(run.ok("tag", trained, "--tokenizer", pattern, "--json", stdin="Ada wrote"))
    assert made["tokens"] == ["A", "da", "wrote"]
