"""The commands against one real server: from a file to a served model, and back."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tests.cli.command import CommandRunner, people

TEXT = "Ada Lovelace wrote to Charles Babbage in London."


def test_three_commands_lead_from_a_file_to_a_tagged_sentence(
    run: CommandRunner, corpus_file: Path, stack: BackgroundStack
) -> None:
    said = run.ok("train", corpus_file, "--model", "cli-three", "--dev", "0.2", "--passes", "3")
    lines = said.splitlines()
    assert lines[0].endswith(
        "cli-people.conll: conll, 80 sentences, 640 tokens, 1 column, labels PER LOC (IOB2)"
    )
    assert re.search(
        r"^Done in .*: cli-three:1 +dev F1 100\.00 \((PER|LOC) 100\.0, (LOC|PER) 100\.0\)", said, re.MULTILINE
    )
    assert 'Try it:    echo "Some text" | tagsmith tag cli-three:1' in lines
    assert run.ok("models", "promote", "cli-three:1") == "cli-three@champion: v1\n"
    tagged = run.ok("tag", "cli-three", stdin=TEXT)
    assert [line.split("\t")[:2] for line in tagged.splitlines()] == [
        ["Ada Lovelace", "PER"],
        ["Charles Babbage", "PER"],
        ["London", "LOC"],
    ]
    assert "\x1b[" not in said + tagged


LEXICONS = """\
features:
  templates: [[word], [t], [p], [c]]
  derived:
    t: {kind: lexicon, lexicon: types.tsv}
    p: {kind: lexicon, lexicon: places.txt}
    c: {kind: cluster, lexicon: paths}
"""


def test_lexicons_are_files_beside_the_spec_and_uploaded_to_a_server(
    run: CommandRunner, corpus_file: Path, tmp_path: Path, stack: BackgroundStack
) -> None:
    (tmp_path / "types.tsv").write_text("PER\tAda Lovelace\nLOC\tParis\n")
    (tmp_path / "places.txt").write_text("# cities\nLondon\nNew York\n")
    (tmp_path / "paths").write_text("0110\tAda\t7\n0111\tGrace\t5\n")
    spec = tmp_path / "spec.yaml"
    spec.write_text(LEXICONS)
    options = ["--spec", spec, "--passes", "2"]
    run.ok("train", "--local", corpus_file, "--model", tmp_path / "local", *options)
    run.ok("train", corpus_file, "--model", "cli-lexicons", *options)
    run.ok("models", "export", "cli-lexicons:1", "-o", tmp_path / "served")
    assert (tmp_path / "served").read_bytes() == (tmp_path / "local").read_bytes()
    with Client(stack.url) as client:
        kinds = {each.name: each.kind for each in client.lexicons()}
    assert {"types": "typed", "places": "words", "paths": "clusters"}.items() <= kinds.items()


def test_jobs_are_listed_shown_and_controlled_by_six_characters(run: CommandRunner, trained: str) -> None:
    newest = json.loads(run.ok("jobs", "ls", "--model", trained, "--json"))[0]
    short = newest["id"][-6:]
    table = run.ok("jobs", "ls", "--model", trained)
    assert table.splitlines()[0].split() == ["JOB", "KIND", "MODEL", "STATE", "PROGRESS", "SCORE", "STARTED"]
    assert table.splitlines()[1].split()[:4] == [short, "train", trained, "succeeded"]
    assert newest["id"] in run.ok("jobs", "show", short)
    assert json.loads(run.ok("jobs", "show", short, "--json"))["id"] == newest["id"]
    assert f"{trained}:2" in run.ok("jobs", "watch", short)
    ran = run("jobs", "cancel", short)
    assert ran.code == 2
    assert "succeeded" in ran.err


def test_a_detached_job_is_cancelled(run: CommandRunner, corpus_file: Path) -> None:
    options = ["--trainer", "sgd", "--passes", "100000", "--detach"]
    said = run.ok("train", corpus_file, "--model", "cli-cancelled", *options)
    short = re.search(r"Started job (\w{6})\.", said)
    assert short is not None
    assert f"tagsmith jobs cancel {short[1]}" in said
    run.ok("jobs", "cancel", short[1])
    ran = run("jobs", "watch", short[1])
    assert (ran.code, ran.err) == (1, f"Job {short[1]} was cancelled.\n")
    assert "Started" in run.ok("jobs", "retry", short[1])
    newest = json.loads(run.ok("jobs", "ls", "--model", "cli-cancelled", "--json"))[0]
    run.ok("jobs", "cancel", newest["id"])


def test_models_are_shown_promoted_rolled_back_and_compared(run: CommandRunner, trained: str) -> None:
    run.ok("models", "promote", f"{trained}:1", "--reason", "first")
    assert run.ok("models", "promote", f"{trained}:2", "-m", "better on dev").startswith(
        f"{trained}@champion: v1 -> v2"
    )
    assert (
        run.ok("models", "rollback", trained, "--reason", "worse on dates")
        == f"{trained}@champion: v2 -> v1\n"
    )
    rows = run.ok("models", "history", trained).splitlines()
    assert "rollback" in rows[1]
    assert rows[1].endswith("worse on dates")
    assert "champion" in run.ok("models", "show", trained)
    assert "accuracy 100.00 %" in run.ok("models", "show", f"{trained}:2")
    assert f"{trained} " in run.ok("models", "ls", "-n", "100")
    diff = run.ok("models", "diff", f"{trained}:1", "2")
    assert re.search(r"trainer\.passes +3 +4", diff)


def test_an_exported_model_is_imported_as_the_next_version(
    run: CommandRunner, trained: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.tagsmith"
    run.ok("models", "export", f"{trained}:1", "-o", path)
    assert "Imported cli-imported:1" in run.ok("models", "import", "cli-imported", path)
    run.ok("models", "rm", "cli-imported:1")


def test_corpora_are_pushed_listed_shown_and_removed(run: CommandRunner, tmp_path: Path) -> None:
    path = tmp_path / "cli-broken.conll"
    path.write_text("Ada I-PER\nin O\nParis B-LOC\nnow I-PER\n\n" * 3)
    said = run.ok("corpora", "push", path)
    assert "labels break" in said
    assert "--repair corrects them" in said
    assert "cli-broken" in run.ok("corpora", "ls", "-n", "100")
    assert "I-PER" in run.ok("corpora", "show", "cli-broken")
    assert json.loads(run.ok("corpora", "show", "cli-broken", "--json"))["report"]["bio_fault_count"] > 0
    assert run.ok("corpora", "rm", "cli-broken").startswith("Deleted cli-broken")
    ran = run("corpora", "show", "cli-broken")
    assert ran.code == 2


def test_a_corpus_of_trees_is_shown_with_its_relations(run: CommandRunner, tmp_path: Path) -> None:
    path = tmp_path / "cli-trees.conllu"
    path.write_text(
        "1\ta\t_\tX\t_\t_\t3\tx\t_\t_\n2\tb\t_\tX\t_\t_\t0\troot\t_\t_\n3\tc\t_\tX\t_\t_\t2\tx\t_\t_\n\n"
        "1\td\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    )
    said = run.ok("corpora", "push", path, "--option", "label=tree")
    assert "conllu, 2 sentences, 4 tokens, 1 column, trees with 2 relations" in said
    listed = next(line for line in run.ok("corpora", "ls").splitlines() if "cli-trees" in line)
    assert listed.split()[1:5] == ["conllu", "2", "4", "trees"]
    shown = run.ok("corpora", "show", "cli-trees")
    assert "1 of 2 sentences have crossing arcs, 0 have several roots" in shown
    table = shown[shown.index("RELATION") :].splitlines()
    assert [line.split()[:2] for line in table[1:3]] == [["x", "2"], ["root", "2"]]
    run.ok("corpora", "rm", "cli-trees")


def test_evaluation_explanation_comparison_and_search(
    run: CommandRunner, trained: str, corpus_file: Path
) -> None:
    scores = run.ok("eval", f"{trained}:1", f"{trained}:2", corpus_file)
    assert scores.splitlines()[0] == f"{trained}:1"
    assert f"{trained}:2 against {trained}:1: F1" in scores
    assert run.ok("explain", trained, TEXT, "--token", "London").startswith("London  B-LOC ")
    compared = run.ok("compare", corpus_file, "sgd-l1", "perceptron", "--passes", "2", "--dev", "0.2")
    table = compared[compared.index("NAME") :].splitlines()
    assert {line.split()[0] for line in table[1:]} == {"sgd-l1", "perceptron"}
    tuned = run.ok("tune", corpus_file, "--search", "trainer.l1=0.1,1", "--folds", "2", "--passes", "2")
    assert "Best: trainer.l1 = " in tuned


def test_doctor_finds_the_server_ready(run: CommandRunner, stack: BackgroundStack) -> None:
    findings = {each["name"]: each for each in json.loads(run("doctor", "--json").out)}
    assert stack.url in findings["answers"]["found"]
    assert findings["ready"]["verdict"] == "ok"
    assert findings["python"]["verdict"] == findings["engine"]["verdict"] == "ok"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["train", "nothing", "--model", "m"],
            "There is no corpus nothing. There is no file nothing either.",
        ),
        (["train", "cli-poeple", "--model", "m"], "There is no corpus cli-poeple; did you mean cli-people?"),
        (["corpora", "show", "cli-poeple"], "There is no corpus cli-poeple; did you mean cli-people?\n"),
        (["train", "nothing.conll", "--model", "m"], "There is no file nothing.conll."),
        (
            ["train", "{corpus}", "--model", "m", "--trainer", "lbgfs"],
            "There is no trainer lbgfs; did you mean lbfgs? `tagsmith trainers` lists all",
        ),
        (["train", "{corpus}", "--model", "M!"], "--model M!: Names use lower-case letters"),
        (["train", "{corpus}", "--model", "m", "--trainer", "qqqqq"], "There is no trainer qqqqq. Known: "),
        (["train", "/tmp", "--model", "m"], "/tmp is a folder. Give a file."),
        (["models", "show", "cli-people:abc"], "cli-people:abc: the version must be a number"),
        (["models", "show", ".."], "Names use lower-case letters"),
        (["corpora", "rm", ".."], "There is no corpus .."),
        (["jobs", "cancel", ".."], "There is no job .."),
        (
            ["models", "history", "cli-people:1"],
            "cli-people:1 is a version. Give the model, cli-people, or an",
        ),
        (["models", "rollback", "cli-people:1"], "cli-people:1 is a version."),
        (["models", "rm", "cli-people:1", "--force"], "--force deletes whole models."),
        (["tag", "cli-people", "--tokenizer", "{{"], "--tokenizer { is not valid JSON"),
        (["train", "{corpus}", "--model", "m", "--set", "trainer.kind=sgdd"], "did you mean `sgd`"),
        (["train", "{corpus}", "--model", "m", "--option", "labels=iob9"], "labels: "),
        (["tag", "cli-nobody"], "There is no model cli-nobody."),
        (["models", "show", "cli-people@nobody"], "cli-people has no alias nobody."),
        (["models", "show", "cli-people:x"], "the version must be a number"),
        (["models", "show", "cli-people:²"], "the version must be a number"),
        (
            ["compare", "{corpus}", "--set", "trainers=sgd", "--passes", "2"],
            "trainers of the spec must be a list",
        ),
        (["jobs", "show", "zzzzzz"], "There is no job zzzzzz. `tagsmith jobs ls` lists them."),
        (["tune", "{corpus}"], "Say what to search, for example: --search trainer.l1=0.1,0.3,1"),
        (["trian"], "Did you mean 'train'"),
        (["train", "{corpus}", "--modle", "m"], "Did you mean --model?"),
        (["train"], "Missing argument 'CORPUS'."),
    ],
)
def test_mistakes_are_answered_by_a_sentence_and_code_2(
    run: CommandRunner, corpus_file: Path, trained: str, arguments: list[str], says: str
) -> None:
    ran = run(*(each.format(corpus=corpus_file) for each in arguments), stdin="x")
    assert ran.code == 2, ran
    assert says in ran.err
    assert "Traceback" not in ran.err


def test_a_server_that_is_away_is_named_with_what_to_do(run: CommandRunner, corpus_file: Path) -> None:
    for arguments in (["models", "ls"], ["train", str(corpus_file), "--model", "m"], ["jobs", "ls"]):
        ran = run(*arguments, "--url", "http://127.0.0.1:1")
        assert (ran.code, ran.err) == (
            1,
            "Nothing answers at http://127.0.0.1:1. Start a server with `tagsmith up`, or use --local.\n",
        )


def test_help_and_version_import_neither_numba_nor_the_server_nor_httpx() -> None:
    code = (
        "import sys; from tagsmith.cli.main import main; main(['--help']); main(['--version']); "
        "print(sorted({'numba', 'numpy', 'httpx', 'pydantic', 'sqlalchemy', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "tagsmith 0.1.0" in done.stdout


def test_the_same_file_is_uploaded_once(run: CommandRunner, tmp_path: Path) -> None:
    path = tmp_path / "cli-once.conll"
    path.write_text(people(8))
    first = json.loads(run.ok("corpora", "push", path, "--json"))
    run.ok("train", path, "--model", "cli-once", "--passes", "1")
    assert run("train", path, "--model", "cli-once", "--set", "trainer.l1=-1").code == 2
    assert json.loads(run.ok("corpora", "push", path, "--json")) == first
    other = json.loads(run.ok("corpora", "push", path, "--option", "labels=bioes", "--json"))
    assert (first["number"], other["number"]) == (1, 2)
    path.write_text(people(12))
    assert json.loads(run.ok("corpora", "push", path, "--json"))["number"] == 3


def test_what_was_stored_before_a_failure_is_printed(run: CommandRunner, tmp_path: Path) -> None:
    good, bad = tmp_path / "cli-good.conll", tmp_path / "cli-bad.conll"
    good.write_text(people(4))
    bad.write_text("a B\na b C\n")
    ran = run("corpora", "push", good, bad, "--json")
    assert ran.code == 2
    assert [each["name"] for each in json.loads(ran.out)] == ["cli-good"]


def test_a_corpus_comes_from_standard_input(run: CommandRunner, tmp_path: Path) -> None:
    run.ok("train", "-", "--model", "cli-stdin", "--passes", "1", stdin=people(8))
    run.ok("models", "export", "cli-stdin:1", "-o", tmp_path / "served")
    run.ok("train", "--local", "-", "--model", tmp_path / "local", "--passes", "1", stdin=people(8))
    assert (tmp_path / "served").read_bytes() == (tmp_path / "local").read_bytes()


def test_aliases_are_named_with_the_model(run: CommandRunner, trained: str) -> None:
    assert "Created the alias canary." in run.ok("models", "promote", f"{trained}:1", "--alias", "canary")
    assert "Created" not in run.ok("models", "promote", f"{trained}:2", "--alias", "canary")
    assert run.ok("models", "rollback", f"{trained}@canary") == f"{trained}@canary: v2 -> v1\n"
    assert run.ok("models", "history", f"{trained}@canary").count("canary") == 1


def test_doctor_reports_a_named_server_that_is_away(run: CommandRunner) -> None:
    ran = run("doctor", "--url", "http://127.0.0.1:1")
    assert ran.code == 1
    assert "server http://127.0.0.1:1;" in ran.out
    assert "Everything is fine" not in ran.out


def test_jobs_and_models_are_deleted(run: CommandRunner, corpus_file: Path) -> None:
    run.ok("train", corpus_file, "--model", "cli-deleted", "--passes", "1")
    newest = json.loads(run.ok("jobs", "ls", "--model", "cli-deleted", "--json"))[0]
    assert run.ok("jobs", "rm", newest["id"][-6:]) == f"Deleted job {newest['id'][-6:]}.\n"
    run.ok("models", "promote", "cli-deleted:1")
    assert run("models", "rm", "cli-deleted").code == 2
    assert run.ok("models", "rm", "cli-deleted", "--force") == "Deleted cli-deleted.\n"
    assert run("models", "show", "cli-deleted").code == 2
