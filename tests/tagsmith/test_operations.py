"""Every operation of the API has a method of the clients."""

import inspect
import pydoc
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tagsmith import AsyncClient, Client
from tagsmith.app.main import create_app
from tagsmith.core.service.settings import Settings
from tagsmith.wire import CorpusInfo, JobEvent, ModelInfo

ROOT = Path(__file__).parents[2]

#: The methods that make each operation's request. A new operation needs a line here, and a method.
METHODS = {
    "GET /audit": "audit",
    "GET /corpora": "corpora",
    "POST /corpora": "upload",
    "POST /corpora/inspect": "inspect",
    "GET /corpora/{corpus_id}": "corpus",
    "GET /corpora/{corpus_id}/sentences": "sentences",
    "DELETE /corpora/{corpus_id}": "delete_corpus",
    "GET /corpora/{corpus_id}/content": "content save_content",
    "GET /corpora/{corpus_id}/report": "report",
    "POST /features/preview": "preview",
    "GET /jobs": "jobs",
    "POST /jobs": "submit train compare tune evaluate tag_corpus rank",
    "POST /jobs/validate": "validate",
    "DELETE /jobs/{job_id}": "delete_job",
    "GET /jobs/{job_id}": "job wait",
    "POST /jobs/{job_id}/cancel": "cancel",
    "GET /jobs/{job_id}/events": "events follow",
    "GET /jobs/{job_id}/output": "output save_output",
    "POST /jobs/{job_id}/pause": "pause",
    "GET /jobs/{job_id}/plot.svg": "plot",
    "POST /jobs/{job_id}/resume": "resume",
    "POST /jobs/{job_id}/retry": "retry",
    "GET /jobs/{job_id}/table.csv": "table",
    "GET /keys": "keys",
    "POST /keys": "create_key",
    "GET /keys/{key_id}": "key",
    "DELETE /keys/{key_id}": "revoke_key",
    "GET /lexicons": "lexicons",
    "POST /lexicons": "upload_lexicon",
    "GET /lexicons/{lexicon_id}": "lexicon",
    "DELETE /lexicons/{lexicon_id}": "delete_lexicon",
    "GET /lexicons/{lexicon_id}/content": "lexicon_content save_lexicon_content",
    "GET /livez": "liveness",
    "GET /metrics": "metrics",
    "GET /models": "models",
    "GET /models/{name}": "model",
    "DELETE /models/{name}": "delete_model",
    "GET /models/{name}/aliases": "aliases",
    "GET /models/{name}/aliases/{alias}": "alias",
    "PUT /models/{name}/aliases/{alias}": "promote",
    "GET /models/{name}/aliases/{alias}/history": "history",
    "POST /models/{name}/aliases/{alias}/rollback": "rollback",
    "GET /models/{name}/compare": "compare_versions",
    "GET /models/{name}/policy": "policy",
    "PUT /models/{name}/policy": "set_policy",
    "DELETE /models/{name}/policy": "delete_policy",
    "GET /models/{name}/retention": "retention",
    "GET /models/{name}/versions": "versions",
    "POST /models/{name}/versions": "import_model",
    "GET /models/{name}/versions/{number}": "version",
    "DELETE /models/{name}/versions/{number}": "delete_version",
    "GET /models/{name}/versions/{number}/artifact": "artifact save_artifact",
    "GET /models/{name}/versions/{number}/features": "features",
    "GET /models/{name}/versions/{number}/templates": "templates template_selection",
    "GET /models/{name}/versions/{number}/templates.svg": "template_plot",
    "GET /models/{name}/versions/{number}/transitions": "transitions",
    "GET /models/{name}/versions/{number}/weights": "weights",
    "GET /presets": "presets",
    "GET /readyz": "readiness ready",
    "POST /tag": "tag tag_text tag_lines parse",
    "GET /trainers": "trainers",
    "GET /version": "server_version",
}
#: A program that uses both clients. An ignored error that does not occur is an error too.
TYPED = """
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import assert_type
from tagsmith import AsyncClient, Client
from tagsmith.client import AsyncJobHandle, JobHandle
from tagsmith.wire import CorpusInfo, JobEvent, ModelInfo

client = Client()
assert_type(client.corpus("a"), CorpusInfo)
assert_type(client.models(), Iterator[ModelInfo])
assert_type(client.events("a"), list[JobEvent])
assert_type(client.train("ner", "a", preset="ner").watch(), JobHandle)
assert_type(client.save_artifact("model", "ner", 1), Path)
client.corpus(1)  # type: ignore[arg-type]
client.corpus("a", "b")  # type: ignore[call-arg]

async def main() -> None:
    client = AsyncClient()
    assert_type(await client.corpus("a"), CorpusInfo)
    assert_type(client.models(), AsyncIterator[ModelInfo])
    assert_type(await client.events("a"), list[JobEvent])
    assert_type(await (await client.train("ner", "a")).watch(), AsyncJobHandle)
    assert_type(await client.save_artifact("model", "ner", 1), Path)
    await client.corpus(1)  # type: ignore[arg-type]
"""
#: Query parameters that the client sets itself, and those that no method needs.
LEFT_OUT = {"cursor", "limit"}
#: What the parameters of the API are called in the methods.
CALLED = {"name", "number", "alias", "job_id", "corpus_id", "lexicon_id", "key_id"}


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("data")
    return create_app(Settings(data_dir=folder, database_url=f"sqlite:///{folder}/db")).openapi()


def operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path}": operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }


def test_every_operation_has_a_method(document: dict[str, Any]) -> None:
    assert set(METHODS) == set(operations(document))
    for methods in METHODS.values():
        for name in methods.split():
            assert callable(getattr(Client, name))
            assert callable(getattr(AsyncClient, name))


def test_every_parameter_of_an_operation_is_one_of_its_methods(document: dict[str, Any]) -> None:
    for name, operation in operations(document).items():
        taken: set[str] = set()
        for method in METHODS[name].split():
            taken |= set(inspect.signature(getattr(Client, method)).parameters)
        asked = {
            parameter["name"]
            for parameter in operation.get("parameters", ())
            if parameter["in"] in ("query", "path")
        }
        if "options" in taken:  # those of formats
            asked -= {each for each in asked if each not in {"name", "format", "model", *CALLED}}
        assert asked - LEFT_OUT <= taken, name
        headers = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "header"}
        assert "Idempotency-Key" not in headers or "idempotency_key" in taken, name
        assert "If-Match" not in {each.title() for each in headers} or "if_match" in taken, name


def test_both_clients_have_the_same_methods() -> None:
    def public(client: type) -> set[str]:
        return {name for name in dir(client) if not name.startswith("_")}

    assert public(Client) == public(AsyncClient)


def test_methods_show_their_signature_and_documentation() -> None:
    signature = inspect.signature(Client.corpus)
    assert list(signature.parameters) == ["self", "corpus_id"]
    assert signature.return_annotation is CorpusInfo
    assert inspect.signature(AsyncClient.models).return_annotation == AsyncIterator[ModelInfo]
    assert inspect.signature(Client.events).return_annotation == list[JobEvent]
    assert list(inspect.signature(AsyncClient.save_artifact).parameters) == ["self", "to", "name", "number"]
    assert inspect.iscoroutinefunction(AsyncClient.corpus)
    assert not inspect.iscoroutinefunction(Client.corpus)
    with Client("http://127.0.0.1:1") as client:
        assert list(inspect.signature(client.corpus).parameters) == ["corpus_id"]
        assert client.corpus.__qualname__ == "Operations.corpus"
    for kind in (Client, AsyncClient):
        undocumented = {name for name in dir(kind) if name[0] != "_" and not getattr(kind, name).__doc__}
        assert undocumented == set()
        assert "Start a job that trains" in pydoc.render_doc(kind)


def test_editors_and_type_checkers_see_the_types(tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(TYPED, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", str(tmp_path / "typed.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stdout.splitlines()[-1].startswith("Success"), done.stdout
