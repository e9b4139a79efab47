"""The commands against one real server: from a file to a served model, and back."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.cli import tagged
from tagsmith.client import Client
from tests.cli.command import CommandRunner, people

TEXT = "Ada Lovelace wrote to Charles Babbage in London."
MODEL = "cli-people"


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    stack: BackgroundStack,
) -> CommandRunner:
    return CommandRunner(monkeypatch, capsys, tmp_path, url=stack.url)


@pytest.fixture(scope="module")
def corpus_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpora") / "cli-people.conll"
    path.write_text(people())
    return path


@pytest.fixture(scope="module")
def trained(stack: BackgroundStack, corpus_file: Path) -> str:
    """The name of a model with two versions."""
    with Client(stack.url) as client:
        corpus = client.upload(corpus_file, "cli-people")
        for passes in (3, 4):
            spec = {"model": MODEL, "corpus": corpus.id, "trainer": {"kind": "sgd-l1", "passes": passes}}
            job = client.submit({"kind": "train", "dev": {"fraction": 0.2}, **spec})
            assert client.wait(job.id).state == "succeeded"
    return MODEL


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


def _in_terminal(
    arguments: list[str], environment: dict[str, str], until: str, interrupt: bool = False
) -> tuple[int, str]:
    """Run the command in a terminal of 100 columns; press Ctrl-C when it shows `until`, if wanted."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "tagsmith.cli", *arguments], environment)
    shown, pressed = b"", False
    end = time.monotonic() + 60
    while time.monotonic() < end:
        ready, _, _ = select.select([terminal], [], [], 1.0)
        if not ready:
            continue
        try:
            block = os.read(terminal, 65536)
        except OSError:
            break
        if not block:
            break
        shown += block
        if interrupt and not pressed and until in shown.decode(errors="replace"):
            pressed = True
            os.kill(pid, signal.SIGINT)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode(errors="replace")


def test_a_terminal_shows_a_live_line_with_a_bar_the_score_and_its_curve(
    stack: BackgroundStack, corpus_file: Path, tmp_path: Path
) -> None:
    environment = {**os.environ, "TAGSMITH_URL": stack.url, "COLUMNS": "100", "TERM": "xterm-256color"}
    environment |= {"XDG_CONFIG_HOME": str(tmp_path)}
    arguments = ["train", str(corpus_file), "--model", "cli-live", "--dev", "0.2", "--passes", "400"]
    code, shown = _in_terminal(arguments, environment, until="")
    assert code == 0, shown
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert re.search(r"pass +\d+/400  ━+.*dev F1 \d+\.\d", text), text
    assert re.search(r"[▁▂▃▄▅▆▇█]{2}", text)
    assert "\x1b[" in shown
    assert "Done in" in text
    # Without colours on request.
    code, shown = _in_terminal(["models", "show", "cli-live"], environment | {"NO_COLOR": "1"}, until="")
    assert code == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", shown)


def test_ctrl_c_detaches_and_says_how_to_return(
    stack: BackgroundStack, corpus_file: Path, tmp_path: Path, run: CommandRunner
) -> None:
    environment = {**os.environ, "TAGSMITH_URL": stack.url, "COLUMNS": "100", "TERM": "xterm-256color"}
    environment |= {"XDG_CONFIG_HOME": str(tmp_path)}
    arguments = [
        "train",
        str(corpus_file),
        "--model",
        "cli-detached",
        "--trainer",
        "sgd",
        "--passes",
        "100000",
    ]
    code, shown = _in_terminal(arguments, environment, until="pass ", interrupt=True)
    assert code == 130, shown
    found = re.search(r"tagsmith jobs cancel (\w{6})", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown))
    assert found is not None, shown
    assert json.loads(run.ok("jobs", "show", found[1], "--json"))["state"] == "running"
    run.ok("jobs", "cancel", found[1])


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


def test_a_pattern_splits_text_on_a_server(run: CommandRunner, trained: str) -> None:
    pattern = json.dumps({"pattern": "[a-z]+|[A-Z]"})
    made = json.loads(run.ok("tag", trained, "--tokenizer", pattern, "--json", stdin="Ada wrote"))
    assert made["tokens"] == ["A", "da", "wrote"]


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
