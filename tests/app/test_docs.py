"""The OpenAPI document and the page that shows it, without any network but the server's own."""

import re

import httpx
import pytest
from jsonschema_rs import Draft202012Validator, meta

from tagsmith.core.jobs import kinds

CONTRACT = {
    ("post", "/corpora"), ("get", "/corpora"), ("get", "/corpora/{corpus_id}"), ("delete", "/corpora/{corpus_id}"),
    ("get", "/corpora/{corpus_id}/report"), ("get", "/corpora/{corpus_id}/content"),
    ("post", "/corpora/inspect"), ("get", "/corpora/{corpus_id}/sentences"),
    ("delete", "/jobs/{job_id}"), ("delete", "/models/{name}"),
    ("post", "/jobs/validate"), ("get", "/trainers"), ("get", "/presets"),
    ("post", "/lexicons"), ("get", "/lexicons"), ("get", "/lexicons/{lexicon_id}"),
    ("delete", "/lexicons/{lexicon_id}"), ("get", "/lexicons/{lexicon_id}/content"),
    ("post", "/jobs"), ("get", "/jobs"), ("get", "/jobs/{job_id}"), ("get", "/jobs/{job_id}/events"),
    ("post", "/jobs/{job_id}/cancel"), ("post", "/jobs/{job_id}/pause"), ("post", "/jobs/{job_id}/resume"),
    ("post", "/jobs/{job_id}/retry"), ("get", "/jobs/{job_id}/table.csv"), ("get", "/jobs/{job_id}/plot.svg"),
    ("get", "/models"), ("get", "/models/{name}"), ("get", "/models/{name}/versions"),
    ("post", "/models/{name}/versions"), ("get", "/models/{name}/compare"),
    ("get", "/models/{name}/versions/{number}"), ("delete", "/models/{name}/versions/{number}"),
    ("get", "/models/{name}/versions/{number}/artifact"),
    ("get", "/models/{name}/versions/{number}/templates"),
    ("get", "/models/{name}/versions/{number}/features"),
    ("get", "/models/{name}/versions/{number}/transitions"),
    ("get", "/models/{name}/versions/{number}/weights"),
    ("get", "/jobs/{job_id}/output"),
    ("get", "/models/{name}/versions/{number}/templates.svg"), ("get", "/models/{name}/aliases"),
    ("get", "/models/{name}/aliases/{alias}"), ("put", "/models/{name}/aliases/{alias}"),
    ("post", "/models/{name}/aliases/{alias}/rollback"), ("get", "/models/{name}/aliases/{alias}/history"),
    ("get", "/models/{name}/policy"), ("put", "/models/{name}/policy"), ("delete", "/models/{name}/policy"),
    ("get", "/models/{name}/retention"),
    ("post", "/keys"), ("get", "/keys"), ("get", "/keys/{key_id}"), ("delete", "/keys/{key_id}"),
    ("get", "/audit"), ("get", "/metrics"),
    ("post", "/tag"), ("post", "/features/preview"), ("get", "/livez"), ("get", "/readyz"), ("get", "/version"),
}  # fmt: skip


@pytest.fixture
def document(http: httpx.Client) -> dict:  # type: ignore[type-arg]
    response = http.get("/openapi.json")
    assert response.status_code == 200
    return response.json()  # type: ignore[no-any-return]


def test_the_document_names_every_route_of_the_contract(document: dict) -> None:  # type: ignore[type-arg]
    routes = {(method, path) for path, item in document["paths"].items() for method in item}
    assert routes == CONTRACT


def test_every_route_can_answer_with_a_problem_and_with_no_other_error(document: dict) -> None:  # type: ignore[type-arg]
    for path, item in document["paths"].items():
        for method, operation in item.items():
            answer = operation["responses"]["default"]
            assert list(answer["content"]) == ["application/problem+json"], (method, path)
    assert "ProblemDetails" in document["components"]["schemas"]
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_every_reference_leads_somewhere(document: dict) -> None:  # type: ignore[type-arg]
    references = re.findall(r'"#/components/schemas/([^"]+)"', httpx.Response(200, json=document).text)
    assert set(references) <= set(document["components"]["schemas"])
    for schema in document["components"]["schemas"].values():
        meta.validate(schema)


def test_answers_are_what_the_document_says(http: httpx.Client, document: dict) -> None:  # type: ignore[type-arg]
    problem = http.get("/models/nobody").json()
    schema = {"$ref": "#/components/schemas/ProblemDetails", "components": document["components"]}
    Draft202012Validator(schema).validate(problem)


def test_jobs_are_told_apart_by_kind_and_each_kind_has_an_example(document: dict) -> None:  # type: ignore[type-arg]
    body = document["paths"]["/jobs"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["discriminator"]["propertyName"] == "kind"
    named = set(body["schema"]["discriminator"]["mapping"])
    assert named == {"train", "compare", "tune", "evaluate", "tag", "rank"}
    assert {example["value"]["kind"] for example in body["examples"].values()} == named
    schema = {**body["schema"], "components": document["components"]}
    for example in body["examples"].values():
        Draft202012Validator(schema).validate(example["value"])
        assert kinds.parse_job(example["value"]).kind == example["value"]["kind"]


def test_the_page_loads_nothing_from_elsewhere(http: httpx.Client) -> None:
    page = http.get("/docs")
    assert page.status_code == 200
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(addresses) == 3
    for address in addresses:
        assert address.startswith("/docs/assets/")
        asset = http.get(address)
        assert asset.status_code == 200
        assert len(asset.content) > 500
    assert not re.findall(r"https?://", page.text)
    assert "'/openapi.json'" in page.text
    assert '"validatorUrl": null' in page.text


def test_the_assets_can_show_the_version_of_the_document(http: httpx.Client, document: dict) -> None:  # type: ignore[type-arg]
    assert document["openapi"].startswith("3.1.")
    # Swagger UI shows OpenAPI 3.1 since version 5.
    bundle = http.get("/docs/assets/swagger-ui-bundle.js").text
    found = re.search(r'PACKAGE_VERSION:"(\d+)\.', bundle)
    assert found
    assert int(found[1]) >= 5
