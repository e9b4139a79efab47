"""`--local`: train, tag, evaluate and explain on files, without any server."""

import gzip
import json
from pathlib import Path

import pytest

from tagsmith.cli.local import tagging
from tests.cli.command import CommandRunner, people

TEXT = "Ada Lovelace wrote to Charles Babbage in London."
TEMPLATES = "U00:%x[0,{column}]\nU01:%x[-1,0]\nB\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus of one column, one of two columns, and a model of each."""
    from tagsmith.cli.main import main

    folder = tmp_path_factory.mktemp("local")
    (folder / "people.conll").write_text(people())
    two = [
        line and f"{line.split()[0]}\t{line.split()[0].lower()}\t{line.split()[1]}"
        for line in people().split("\n")
    ]
    (folder / "two.conll").write_text("\n".join(two))
    for column, name in enumerate(("people", "two")):
        corpus, model, templates = (
            folder / f"{name}{suffix}" for suffix in (".conll", ".tagsmith", ".templates")
        )
        templates.write_text(TEMPLATES.format(column=column))
        arguments = ["train", "--local", corpus, "--model", model, "--template", templates]
        assert main([str(each) for each in (*arguments, "--passes", "8")]) == 0
    return folder


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandRunner:
    # Nothing listens there: whatever calls a server fails.
    return CommandRunner(monkeypatch, capsys, tmp_path, url="http://127.0.0.1:1")


def test_training_says_what_it_read_how_good_the_model_is_and_what_to_do_next(
    run: CommandRunner, folder: Path, tmp_path: Path
) -> None:
    model = tmp_path / "m.tagsmith"
    options = ["--preset", "ner", "--dev", "0.2", "--passes", "3"]
    said = run.ok("train", "--local", folder / "people.conll", "--model", model, *options)
    first, second, *_ = said.splitlines()
    assert first == (
        f"Read {folder}/people.conll: conll, 80 sentences, 640 tokens, 1 column, labels PER LOC (IOB2)"
    )
    assert second == "Preset ner · trainer sgd-l1"
    assert "dev F1 100.00 (PER 100.0, LOC 100.0)" in said or "dev F1 100.00 (LOC 100.0, PER 100.0)" in said
    assert f"tagsmith tag --local {model}" in said
    assert "\x1b[" not in said


def test_the_same_seed_writes_the_same_bytes_and_json_has_their_checksum(
    run: CommandRunner, folder: Path, tmp_path: Path
) -> None:
    paths = [tmp_path / name for name in ("a", "b", "c")]
    made = []
    for path, seed in zip(paths, ("1", "1", "2"), strict=True):
        arguments = ["--passes", "2", "--seed", seed, "--json"]
        made.append(
            json.loads(run.ok("train", "--local", folder / "people.conll", "--model", path, *arguments))
        )
    assert paths[0].read_bytes() == paths[1].read_bytes() != paths[2].read_bytes()
    assert made[0]["sha256"] == made[1]["sha256"]
    assert made[0]["size_bytes"] == paths[0].stat().st_size


def test_text_becomes_spans_with_offsets_of_the_whole_text(run: CommandRunner, folder: Path) -> None:
    said = run.ok("tag", "--local", folder / "people.tagsmith", stdin=f"{TEXT}\n{TEXT}\n")
    rows = [line.split("\t") for line in said.splitlines()]
    assert [row[:2] for row in rows[:3]] == [
        ["Ada Lovelace", "PER"],
        ["Charles Babbage", "PER"],
        ["London", "LOC"],
    ]
    assert len(rows) == 6
    for text, _, probability, begin, end in rows:
        assert f"{TEXT}\n{TEXT}\n"[int(begin) : int(end)] == text
        assert 0.5 < float(probability) <= 1


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("tags", "B-PER I-PER O O B-PER I-PER O B-LOC O"),
        ("inline", "[Ada Lovelace PER] wrote to [Charles Babbage PER] in [London LOC]."),
        ("columns", "Ada\tB-PER"),
        ("conllu", f"# text = {TEXT}"),
    ],
)
def test_formats_of_tagged_text(run: CommandRunner, folder: Path, name: str, line: str) -> None:
    said = run.ok("tag", "--local", folder / "people.tagsmith", "-f", name, "--no-probabilities", stdin=TEXT)
    assert said.splitlines()[0] == line


def test_json_has_tokens_tags_and_spans(run: CommandRunner, folder: Path) -> None:
    made = json.loads(run.ok("tag", "--local", folder / "people.tagsmith", "--json", stdin=TEXT))
    assert made["text"] == TEXT
    assert made["tokens"][:2] == ["Ada", "Lovelace"]
    assert made["spans"][0] | {"probability": 1} == {
        "type": "PER", "start": 0, "stop": 2, "text": "Ada Lovelace", "begin": 0, "end": 12, "probability": 1
    }  # fmt: skip


def test_ndjson_goes_to_ndjson_and_keeps_ids(run: CommandRunner, folder: Path) -> None:
    lines = [{"id": "x", "text": TEXT}, {"tokens": ["Grace", "met", "Alan"]}]
    said = run.ok("tag", "--local", folder / "people.tagsmith", stdin="\n".join(map(json.dumps, lines)))
    first, second = map(json.loads, said.splitlines())
    assert (first["id"], first["spans"][0]["text"]) == ("x", "Ada Lovelace")
    assert second["tags"] == ["B-PER", "O", "B-PER"]


def test_columns_keep_their_lines_and_get_a_tag_at_the_end(
    run: CommandRunner, folder: Path, tmp_path: Path
) -> None:
    given = "-DOCSTART- x\n\nOf\tof\tmore\r\nVienna\tvienna\tmore\n\n\n  \nThe\tthe\tmore\ncity\tcity\tmore"
    out = tmp_path / "out"
    run.ok("tag", "--local", folder / "two.tagsmith", "--input", "columns", "-o", out, stdin=given)
    assert out.read_bytes().decode() == (
        "-DOCSTART- x\n\nOf\tof\tmore\tO\nVienna\tvienna\tmore\tB-LOC\n\n\n  \n"
        "The\tthe\tmore\tO\ncity\tcity\tmore\tO"
    )


def test_blocks_of_columns_give_the_same_as_one_block(
    run: CommandRunner, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlabelled = "\n".join(line.split(" ")[0] for line in people().split("\n"))
    whole = run.ok("tag", "--local", folder / "people.tagsmith", stdin=unlabelled)
    monkeypatch.setattr(tagging, "BLOCK_BYTES", 1)
    monkeypatch.setattr("tagsmith.cli.inputs.HEAD_BYTES", 100)
    assert (
        run.ok("tag", "--local", folder / "people.tagsmith", "--input", "columns", stdin=unlabelled) == whole
    )
    assert whole == people()


def test_columns_can_have_probabilities(run: CommandRunner, folder: Path) -> None:
    said = run.ok("tag", "--local", folder / "people.tagsmith", "--probabilities", stdin="Ada\nwrote\nto\n")
    word, tag, probability = said.splitlines()[0].split()
    assert (word, tag) == ("Ada", "B-PER")
    assert 0.5 < float(probability) <= 1


def test_a_compressed_file_is_tagged_and_learned_from(
    run: CommandRunner, folder: Path, tmp_path: Path
) -> None:
    packed = tmp_path / "people.conll.gz"
    packed.write_bytes(gzip.compress(people().encode()))
    plain, other = tmp_path / "plain", tmp_path / "other"
    for corpus, model in ((folder / "people.conll", plain), (packed, other)):
        run.ok("train", "--local", corpus, "--model", model, "--passes", "2")
    assert plain.read_bytes() == other.read_bytes()
    assert run.ok("tag", "--local", plain, packed).startswith("Ada B-PER B-PER\n")


def test_evaluation_has_scores_per_type_and_compares_models(run: CommandRunner, folder: Path) -> None:
    said = run.ok("eval", "--local", folder / "people.tagsmith", folder / "people.conll")
    assert [line.split()[0] for line in said.splitlines()[1:5]] == ["TYPE", "PER", "LOC", "all"]
    assert said.splitlines()[4].split() == ["all", "100.00", "100.00", "100.00", "180"]
    made = json.loads(
        run.ok("eval", "--local", folder / "people.tagsmith", folder / "people.conll", "--json")
    )
    assert made["models"][0]["metrics"]["f1"] == 100


def test_explain_and_show_look_into_a_model_file(run: CommandRunner, folder: Path) -> None:
    said = run.ok("explain", "--local", folder / "people.tagsmith", TEXT, "--token", "London")
    assert said.startswith("London  B-LOC ")
    assert "U00:London" in said
    shown = run.ok("models", "show", "--local", folder / "people.tagsmith")
    assert "1 columns" in shown or "1 column" in shown
    assert "B-LOC B-PER I-PER O" in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "--local", "none.conll", "--model", "m"], "There is no file none.conll."),
        (["train", "--local", "people.conll"], "Give the model a name: --model NAME (a file)."),
        (
            ["train", "--local", "people.conll", "--model", "no/m"],
            "give the name of a file in an existing folder",
        ),
        (["train", "--local", "people.conll", "--model", "m", "--trainer", "lbgfs"], "Did you mean lbfgs?"),
        (["train", "--local", "people.conll", "--model", "m", "--preset", "nre"], "Did you mean ner?"),
        (
            ["train", "--local", "people.conll", "--model", "m", "--set", "trainer.l1"],
            "write it as NAME=VALUE",
        ),
        (["train", "--local", "people.conll", "--model", "m", "--set", "trainer.l1=-1"], "trainer.l1: "),
        (["train", "--local", "people.conll", "--model", "m", "--set", "stop.patience=2"], "Give --dev too."),
        (["train", "--local", "people.conll", "--model", "m", "--dev", "1.5"], "between 0 and 1"),
        (["train", "--local", "people.conll", "--model", "m", "--promote"], "need a server"),
        (["train", "--local", "people.conll", "--model", "m", "--set", "promote=champion"], "no aliases"),
        (
            ["train", "--local", "people.conll", "--model", "m", "--format", "conl"],
            "Format 'conl' is unknown",
        ),
        (
            ["train", "--local", "ragged.conll", "--model", "m"],
            "line 2: expected 2 columns as in line 1, found 3",
        ),
        (
            ["train", "--local", "people.conll", "--model", "m", "--spec", "wrong.yaml"],
            "wrong.yaml, line 2 is not",
        ),
        (["tag", "--local", "none.tagsmith"], "There is no model file none.tagsmith."),
        (["tag", "--local", "people.conll"], "people.conll: The file is not a model"),
        (["tag", "--local", "people.tagsmith", "--format", "spams"], "Did you mean spans?"),
        (["tag", "--local", "people.tagsmith", "--input", "xml"], 'Unknown input "xml".'),
        (["tag", "--local", "two.tagsmith", "--input", "text"], "Tokens of this model have 2 columns"),
        (["tag", "--local", "two.tagsmith", "--input", "columns"], "The model needs 2 columns per token."),
        (["eval", "--local", "people.tagsmith"], "Give at least one model and then a corpus"),
        (
            ["explain", "--local", "people.tagsmith", "Ada", "--token", "Grace"],
            "The text has no token Grace.",
        ),
    ],
)
def test_mistakes_are_answered_by_a_sentence_and_code_2(
    run: CommandRunner, folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(folder)
    Path("ragged.conll").write_text("a B\na b C\n")
    Path("wrong.yaml").write_text("trainer: {kind: [\n")
    ran = run(*arguments, stdin="word\n")
    assert (ran.code, ran.out) == (2, ""), ran
    assert says in ran.err
    assert "Traceback" not in ran.err
    assert not Path("m").exists()
