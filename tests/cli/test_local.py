"""`--local`: train, tag, evaluate and explain on files, without any server."""

import gzip
import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tagsmith.cli.local import tagging
from tests.cli.command import CommandRunner, people

TEXT = "Ada Lovelace wrote to Charles Babbage in London."
SEGMENTED = "我们 在 上海\n上海 很 大\n" * 10
TEMPLATES = "U00:%x[0,{column}]\nU01:%x[-1,0]\nB\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with corpora of one column, of two columns, of words and of attributes, and a model of each."""
    from tagsmith.cli.main import main

    folder = tmp_path_factory.mktemp("local")
    (folder / "segmented").write_text(SEGMENTED)
    arguments = ["train", "--local", folder / "segmented", "--model", folder / "segmented.tagsmith"]
    assert (
        main([str(each) for each in (*arguments, "--preset", "segmentation", "--format", "segmented")]) == 0
    )
    (folder / "named.ndjson").write_text(
        '{"tokens": [{"w": "Ada"}, {"w": "wrote"}], "tags": ["PER", "O"]}\n' * 9
    )
    arguments = ["train", "--local", folder / "named.ndjson", "--model", folder / "named.tagsmith"]
    assert main([str(each) for each in arguments]) == 0
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


def test_offsets_count_carriage_returns_and_a_byte_order_mark(run: CommandRunner, folder: Path) -> None:
    text = f"\ufeff{TEXT}\r\n\r\n{TEXT}\r\n"
    rows = [
        line.split("\t")
        for line in run.ok("tag", "--local", folder / "people.tagsmith", stdin=text).splitlines()
    ]
    assert [row[0] for row in rows] == ["Ada Lovelace", "Charles Babbage", "London"] * 2
    assert [text[int(begin) : int(end)] for _, _, _, begin, end in rows] == [row[0] for row in rows]


def test_a_typed_line_is_tagged_before_the_next_one(folder: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        arguments = ["-m", "tagsmith.cli", "tag", "--local", str(folder / "people.tagsmith")]
        os.execve(sys.executable, [sys.executable, *arguments], {**os.environ, "NO_COLOR": "1"})
    try:
        # The first line is shorter than what compressed data begins with.
        for typed, shown in (("A", "[A PER"), (TEXT, "[Ada Lovelace PER"), ("Grace met.", "[Grace PER")):
            os.write(terminal, f"{typed}\n".encode())
            seen = ""
            while shown not in seen:
                ready, _, _ = select.select([terminal], [], [], 60.0)
                assert ready, seen
                seen += os.read(terminal, 65536).decode()
        os.write(terminal, b"\x04")
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
    finally:
        os.close(terminal)


def test_a_segmenting_model_gives_words(run: CommandRunner, folder: Path) -> None:
    # Three lines without blanks are text: the tokens of this model are characters.
    text = "我们在上海\n上海很大\n我们很大\n"
    model = folder / "segmented.tagsmith"
    assert (
        run.ok("tag", "--local", model, "-f", "inline", stdin=text)
        == "我们 在 上海\n上海 很 大\n我们 很 大\n"
    )
    first = json.loads(run.ok("tag", "--local", model, "--json", stdin=text).splitlines()[0])
    assert first["words"] == ["我们", "在", "上海"]
    columns = run.ok("tag", "--local", model, "-f", "columns", "--no-probabilities", stdin="上\u200b海很大\n")
    assert [line.split("\t")[0] for line in columns.splitlines() if line] == ["上", "海", "很", "大"]


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


def test_objects_that_cannot_be_tagged_have_an_error_and_the_exit_code_is_1(
    run: CommandRunner, folder: Path, tmp_path: Path
) -> None:
    lines = [
        {"id": 1, "tokens": [["Ada"], "x"]},
        {"id": 2, "text": 5},
        {"id": 3, "text": TEXT},
        {"tokens": [1]},
    ]
    out = tmp_path / "out"
    arguments = ["tag", "--local", folder / "people.tagsmith", "-o", out]
    ran = run(*arguments, stdin="\n".join(map(json.dumps, lines)))
    assert (ran.code, ran.err) == (1, "3 lines were not tagged. See `error` in the output.\n")
    made = [json.loads(line) for line in out.read_text().splitlines()]
    assert [each.get("id") for each in made] == [1, 2, 3, None]
    assert ["error" in each for each in made] == [True, True, False, True]


def test_the_tokenizer_is_used_for_ndjson(run: CommandRunner, folder: Path) -> None:
    given = json.dumps({"text": "met Ada."})
    for tokenizer, tokens in (("words", ["met", "Ada", "."]), ("blanks", ["met", "Ada."])):
        said = run.ok("tag", "--local", folder / "people.tagsmith", "--tokenizer", tokenizer, stdin=given)
        assert json.loads(said)["tokens"] == tokens


def test_a_model_of_named_attributes_asks_for_ndjson(run: CommandRunner, folder: Path) -> None:
    ran = run("tag", "--local", folder / "named.tagsmith", stdin=TEXT)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith("named.tagsmith takes tokens with named attributes. Give NDJSON with tokens.\n")
    tokens = json.dumps({"tokens": [{"w": "Ada"}, {"w": "wrote"}]})
    assert json.loads(run.ok("tag", "--local", folder / "named.tagsmith", stdin=tokens))["tags"] == [
        "PER",
        "O",
    ]


def test_a_failed_command_leaves_the_file_as_it_was(run: CommandRunner, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("before")
    arguments = ["tag", "--local", folder / "people.tagsmith", "--input", "ndjson", "-o", out]
    assert run(*arguments, stdin='{"text": "Ada"}\nnonsense\n').code == 2
    assert out.read_text() == "before"
    assert list(tmp_path.iterdir()) == [out]


def test_the_dev_set_of_a_spec_is_used(run: CommandRunner, folder: Path, tmp_path: Path) -> None:
    spec, model = tmp_path / "spec.yaml", tmp_path / "m"
    (tmp_path / "dev.conll").write_text(people(8))
    arguments = ["train", "--local", folder / "people.conll", "--model", model, "--spec", spec, "--json"]
    for dev in ("{fraction: 0.2}", "{corpus: dev.conll}"):
        spec.write_text(f"dev: {dev}\nstop: {{patience: 2}}\ntrainer: {{passes: 3}}\n")
        made = json.loads(run.ok(*arguments))
        assert made["metrics"]["dev"]["sentences"] == (16 if "fraction" in dev else 8)


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


def test_the_beginning_of_a_document_may_have_one_column(run: CommandRunner, folder: Path) -> None:
    given = "-DOCSTART-\n\nOf\tof\nVienna\tvienna\n"
    wanted = "-DOCSTART-\n\nOf\tof\tO\nVienna\tvienna\tB-LOC\n"
    assert run.ok("tag", "--local", folder / "two.tagsmith", stdin=given) == wanted


def test_lines_of_a_slow_pipe_are_tagged_as_they_come(folder: Path) -> None:
    command = [sys.executable, "-m", "tagsmith.cli", "tag", "--local", str(folder / "people.tagsmith")]
    with subprocess.Popen(
        [*command, "--input", "text", "-f", "tags"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(2):
            process.stdin.write(f"{TEXT}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().startswith(b"B-PER I-PER O")
        process.stdin.close()


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
    assert "  1 column · " in shown
    assert "  2 columns · " in run.ok("models", "show", "--local", folder / "two.tagsmith")
    assert "B-LOC B-PER I-PER O" in shown


def _with_spec(content: str, *options: str) -> list[str]:
    """Training with a spec file, whose content comes last."""
    model = [] if "model:" in content else ["--model", "m"]
    return ["train", "--local", "people.conll", *model, *options, "--spec", "spec.yaml", content]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "--local", "none.conll", "--model", "m"], "There is no file none.conll."),
        (["train", "--local", "people.conll"], "Give the model a name: --model NAME (a file)."),
        (
            ["train", "--local", "people.conll", "--model", "no/m"],
            "There is no folder no. Create it, or correct --model.",
        ),
        (
            ["train", "--local", "people.conll", "--model", "m", "--trainer", "lbgfs"],
            "There is no trainer lbgfs; did you mean lbfgs?",
        ),
        (
            ["train", "--local", "people.conll", "--model", "m", "--preset", "nre"],
            "There is no preset nre; did you mean ner?",
        ),
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
        (_with_spec("trainer: [a]"), "trainer of the spec must be an object with fields, not ['a']."),
        (_with_spec("features: ner", "--preset", "ner"), "features of the spec must be an object"),
        (_with_spec("{}", "--set", "features=ner"), "features of the spec must be an object"),
        (_with_spec("model: [m]"), "model of the spec must be a text"),
        (_with_spec("seed: 2020-01-01"), "spec.yaml: a spec has texts, numbers, lists and objects; dates,"),
        (_with_spec("seed: .nan"), "spec.yaml: a spec has texts"),
        (_with_spec("2020-01-01: 2"), "spec.yaml: a spec has texts"),
        (_with_spec("features: &a [*a]"), "spec.yaml: a spec has texts"),
        (_with_spec("{}", "--set", "trainer=foo"), "trainer of the spec must be an object"),
        (_with_spec("{}", "--set", "trainer.l1=.inf"), "--set trainer.l1=.inf: a spec has texts"),
        (["explain", "--local", "people.tagsmith", "a\udcff"], "The input has bytes that are not UTF-8"),
        (_with_spec("init: 5"), "init of the spec must be a text"),
        (_with_spec("dev: 0.2"), "dev of the spec must be an object"),
        (_with_spec("dev: {fraction: 2}"), "dev of the spec must be {fraction: 0.1} or {corpus: FILE}."),
        (_with_spec("dev: {corpus: none.conll}"), "There is no file none.conll."),
        (
            _with_spec("max_seconds: 9"),
            "max_seconds has no meaning with --local: it limits jobs of a server.",
        ),
        (
            _with_spec("features: {derived: {gaz: {kind: lexicon, lexicon: none.txt}}}"),
            "features.derived.gaz: there is no lexicon file none.txt.",
        ),
        (
            _with_spec(f"features: {{derived: {{gaz: {{kind: lexicon, lexicon: lex_{'0' * 40}}}}}}}"),
            "features.derived.gaz: a lexicon of a server cannot be used with --local. Name a file.",
        ),
        (
            _with_spec("features: {derived: {gaz: {kind: cluster, lexicon: ragged.conll}}}"),
            "ragged.conll: The lexicon cannot be parsed.",
        ),
        (["tag", "--local", "none.tagsmith"], "There is no model file none.tagsmith."),
        (["tag", "--local", "people.conll"], "people.conll: The file is not a model"),
        (
            ["tag", "--local", "people.tagsmith", "--format", "spams"],
            "There is no format spams; did you mean spans?",
        ),
        (
            ["tag", "--local", "people.tagsmith", "--input", "xml"],
            "There is no input xml. Known: text, columns,",
        ),
        (["tag", "--local", "people.tagsmith", "--tokenizer", "word"], "There is no tokenizer word."),
        (
            ["tag", "--local", "people.tagsmith", "--input", "ndjson", "-f", "tags"],
            "NDJSON cannot be written as tags.",
        ),
        (["tag", "--local", "people.tagsmith", "-o", "no/out"], "There is no folder no."),
        (["tag", "--local", "people.tagsmith", "-o", ""], "is a folder. Give the name of a file."),
        (
            ["tag", "--local", "two.tagsmith", "--input", "text"],
            "two.tagsmith needs 2 columns per token; line",
        ),
        (
            ["tag", "--local", "two.tagsmith", "--input", "columns"],
            "two.tagsmith needs 2 columns per token; line 1 has 1. To tag raw text, train with --option columns=0.",
        ),
        (
            ["tag", "--local", "people.conll", "people"],
            "Give the model first: tagsmith tag people people.conll",
        ),
        (["eval", "--local", "people.tagsmith"], "Give at least one model and then a corpus"),
        (
            ["eval", "--local", "people.tagsmith", "trees.conllu", "--option", "label=tree"],
            "people.tagsmith gives tags, and the corpus has dependency trees.",
        ),
        (
            ["train", "--local", "trees.conllu", "--model", "m", "--option", "label=tree"],
            "trees.conllu has dependency trees",
        ),
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
    Path("trees.conllu").write_text("1\tAda\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    if "spec.yaml" in arguments:
        *arguments, content = arguments
        Path("spec.yaml").write_text(content)
    ran = run(*arguments, stdin="word\n")
    assert (ran.code, ran.out) == (2, ""), ran
    assert says in ran.err
    assert "Traceback" not in ran.err
    assert not Path("m").exists()
