"""Wrong input, case by case: what is wrong, where and why, and nothing stored."""

import json
from typing import Any

import httpx
import pytest

from tests.app import samples
from tests.app.servers import ThreadServer, assert_problem

pytestmark = pytest.mark.usefixtures("unchanged")

GOOD = samples.TEXT
spec = samples.spec


@pytest.fixture(scope="module")
def corpus_id(server: ThreadServer) -> str:
    return str(httpx.post(f"{server.url}/corpora", content=GOOD).json()["id"])


class TestJobs:
    """Every spec that cannot be trained."""

    @pytest.mark.parametrize(
        ("changes", "pointer"),
        [
            ({"kind": "dance"}, "/kind"),
            ({"trainer": {"kind": "magic"}}, "/trainer/kind"),
            ({"trainer": {"kind": "sgd-l1", "l1": -0.5}}, "/trainer/l1"),
            ({"trainer": {"kind": "sgd-l1", "passes": -1}}, "/trainer/passes"),
            ({"trainer": {"kind": "sgd-l1", "passes": 0}}, "/trainer/passes"),
            ({"trainer": {"kind": "sgd-l1", "passes": 1.5}}, "/trainer/passes"),
            ({"trainer": {"kind": "sgd-l1", "l1": "much"}}, "/trainer/l1"),
            ({"trainer": {"kind": "sgd-l1", "penalty": "harsh"}}, "/trainer/penalty"),
            ({"trainer": {"kind": "sgd-l1", "speed": 11}}, "/trainer/speed"),
            ({"trainer": {"kind": "sgd-l1", "schedule": {"kind": "exponential", "alpha": -1.0}}},
             "/trainer/schedule/alpha"),
            ({"dev": {"fraction": 1.5}}, "/dev/fraction"),
            ({"dev": {"fraction": -0.1}}, "/dev/fraction"),
            ({"dev": {"fraction": 0.1, "corpus": "crp_1"}}, "/dev/fraction"),
            ({"dev": {}}, "/dev"),
            ({"dev": 0.1}, "/dev"),
            ({"corpus": "ne\tws"}, "/corpus"),
            ({"trainer": "sgd-l1"}, "/trainer"),
            ({"features": {"derived": {"bad name": {"kind": "lower", "of": 0}}}}, "/features/derived/bad name"),
            ({"seed": -1}, "/seed"),
            ({"threads": 0}, "/threads"),
            ({"colour": "blue"}, "/colour"),
            ({"model": "../../etc/passwd"}, "/model"),
            ({"model": "Chunker"}, "/model"),
            ({"model": ""}, "/model"),
            ({"model": "x" * 65}, "/model"),
            ({"model": "a\nb"}, "/model"),
            ({"model": "chunker\n"}, "/model"),
            ({"promote": "not an alias"}, "/promote"),
            ({"stop": {"max_seconds": -1}}, "/stop/max_seconds"),
        ],
    )  # fmt: skip
    def test_a_wrong_field_is_pointed_at(
        self, http: httpx.Client, corpus_id: str, changes: dict[str, Any], pointer: str
    ) -> None:
        problem = assert_problem(http.post("/jobs", json=spec(corpus_id, **changes)), 422, "invalid_spec")
        assert [place["pointer"] for place in problem["errors"]] == [pointer]
        assert problem["errors"][0]["detail"]

    @pytest.mark.parametrize(
        ("route", "body", "kind"),
        [
            ("/jobs", {"seed": -1}, "greater_than_equal"),
            ("/jobs", {"colour": "blue"}, "extra_forbidden"),
            ("/jobs", {"features": {"preset": "chunking", "templates": "U00:%x[0,0]"}}, "value_error"),
            ("/jobs", {"stop": {"patience": 2}}, "inconsistent"),
            ("/features/preview", {"sentence": []}, "too_short"),
            ("/features/preview", {"sentence": [["a"], ["b", "c"]]}, "inconsistent"),
            ("/features/preview", {"sentence": [["a"], "b"]}, "mixed_types"),
            ("/features/preview", {"sentence": [1]}, "string_type"),
            ("/tag", {"model": "any", "sentences": [["a"]], "text": "a"}, "inconsistent"),
            ("/tag", {"model": "any"}, "missing"),
            ("/tag", {"model": "any", "sentences": [["a", ["b"]]]}, "mixed_types"),
        ],
    )  # fmt: skip
    def test_the_fault_has_a_type_for_programs(
        self, http: httpx.Client, corpus_id: str, route: str, body: dict[str, Any], kind: str
    ) -> None:
        response = http.post(route, json=spec(corpus_id, **body) if route == "/jobs" else body)
        code = "invalid_request" if response.json()["code"] == "invalid_request" else "invalid_spec"
        assert_problem(response, 422, code, type=kind)

    @pytest.mark.parametrize(
        ("number", "reason"),
        [("NaN", "expected value"), ("Infinity", "expected value"), ("-Infinity", "invalid number")],
    )
    def test_numbers_that_json_does_not_have_are_refused(
        self, http: httpx.Client, corpus_id: str, number: str, reason: str
    ) -> None:
        body = json.dumps(spec(corpus_id, trainer={"kind": "sgd-l1", "l1": 77})).replace("77", number)
        response = http.post("/jobs", content=body, headers={"Content-Type": "application/json"})
        assert_problem(response, 400, "malformed_json", line=1, reason=reason)

    def test_a_number_too_large_for_a_float_is_pointed_at(self, http: httpx.Client, corpus_id: str) -> None:
        body = json.dumps(spec(corpus_id, trainer={"kind": "sgd-l1", "l1": 77})).replace("77", "1e999")
        response = http.post("/jobs", content=body, headers={"Content-Type": "application/json"})
        assert_problem(response, 422, "invalid_spec", pointer="/trainer/l1")

    @pytest.mark.parametrize(
        ("templates", "line", "reason"),
        [
            ("U00:%x[0,0", 1, "Write a macro as %x[row,column]"),
            ("U00:%x[0,0]\nU01:%x[zero 0]", 2, "Write a macro as %x[row,column]"),
            ("# words\nX00:%x[0,0]", 2, "A template starts with U or B"),
            ("U00:%x[99,0]", 1, "Row 99 is out of range"),
        ],
    )
    def test_a_template_that_does_not_parse_is_named(
        self, http: httpx.Client, corpus_id: str, templates: str, line: int, reason: str
    ) -> None:
        response = http.post("/jobs", json=spec(corpus_id, features={"templates": templates}))
        where = {"pointer": "/features/templates", "line": line}
        assert_problem(response, 422, "invalid_template", reason=reason, **where)

    def test_templates_without_any_are_refused(self, http: httpx.Client, corpus_id: str) -> None:
        response = http.post("/jobs", json=spec(corpus_id, features={"templates": "# nothing"}))
        assert_problem(response, 422, "invalid_template", pointer="/features/templates", reason="No template")

    def test_a_template_that_names_a_missing_column_is_named(
        self, http: httpx.Client, corpus_id: str
    ) -> None:
        response = http.post("/jobs", json=spec(corpus_id, features={"templates": "U00:%x[0,2]\nB"}))
        where = {"pointer": "/features/templates"}
        assert_problem(response, 422, "missing_column", reason="no column 2. The corpus has 2", **where)

    def test_an_unknown_corpus_is_pointed_at(self, http: httpx.Client, corpus_id: str) -> None:
        unknown = "crp_" + "0" * 26
        assert_problem(http.post("/jobs", json=spec(unknown)), 422, "corpus_not_found", pointer="/corpus")
        response = http.post("/jobs", json=spec(corpus_id, dev={"corpus": unknown}))
        assert_problem(response, 422, "corpus_not_found", pointer="/dev/corpus")

    def test_nul_characters_are_pointed_at_wherever_they_are(
        self, http: httpx.Client, corpus_id: str
    ) -> None:
        body = spec(corpus_id, features={"templates": "U00:%x[0,0]\0"}, **{"a\0b": 1})
        problem = assert_problem(
            http.post("/jobs", json=body), 422, "nul_character", pointer="/features/templates"
        )
        assert len(problem["errors"]) == 2

    def test_a_backslash_before_u0000_is_no_nul(self, http: httpx.Client, corpus_id: str) -> None:
        body = spec(corpus_id, **{"a\\u0000b": 1})
        assert_problem(http.post("/jobs", json=body), 422, "invalid_spec", pointer="/a\\u0000b")


class TestJson:
    """Bodies that are not the JSON they say they are."""

    @pytest.mark.parametrize("path", ["/jobs", "/tag"])
    @pytest.mark.parametrize(
        ("body", "code", "line", "reason"),
        [
            (b'{"kind": "train",\n "model": }', "malformed_json", 2, "expected value in column"),
            (b'{"kind": "train"', "malformed_json", 1, "EOF"),
            (b"", "malformed_json", 1, "EOF"),
            (b"\xff\xfe", "malformed_json", 1, "expected value"),
            (b'{"model": "\xff"}', "malformed_json", 1, "unicode"),
            (b'{"model": "\\ud800"}', "malformed_json", 1, "hex escape"),
            (b'{"model": "a\x00b"}', "malformed_json", 1, "control character"),
            (b'{"a": 1} {"b": 2}', "malformed_json", 1, "trailing characters"),
            (b"[" * 100_000, "json_too_deep", 1, "recursion limit exceeded"),
            (b'{"a":' * 40_000, "json_too_deep", 1, "recursion limit exceeded"),
        ],
    )
    def test_broken_json_is_refused_with_its_place(
        self, http: httpx.Client, path: str, body: bytes, code: str, line: int, reason: str
    ) -> None:
        response = http.post(path, content=body, headers={"Content-Type": "application/json"})
        assert_problem(response, 400, code, line=line, reason=reason)

    @pytest.mark.parametrize(
        "body",
        [
            '{"kind": "train", "model": "m", "corpus": "c", "model": "n"}',
            '{"kind": "train", "model": "a:b", "trainer": {"kind": "sgd", "l2": 1, "l2": 2}}',
            '{"kind": "train", "features": {"templates": [{"a": 1, "\\u0061": 2}]}}',
        ],
    )
    def test_a_name_that_occurs_twice_is_refused(self, http: httpx.Client, body: str) -> None:
        response = http.post("/jobs", content=body, headers={"content-type": "application/json"})
        assert_problem(response, 422, "invalid_request", reason="occurs twice")

    @pytest.mark.parametrize("path", ["/jobs", "/tag", "/corpora"])
    def test_two_media_types_are_refused(self, http: httpx.Client, path: str) -> None:
        types = [("Content-Type", "application/json"), ("Content-Type", "application/x-ndjson")]
        assert_problem(http.post(path, content=b"{}", headers=types), 400, "repeated_header")

    @pytest.mark.parametrize("path", ["/jobs", "/tag"])
    @pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", None])
    def test_another_media_type_is_refused(
        self, http: httpx.Client, path: str, content_type: str | None
    ) -> None:
        headers = {"Content-Type": content_type} if content_type else {}
        assert_problem(http.post(path, content=b"{}", headers=headers), 415, "unsupported_media_type")

    @pytest.mark.parametrize("path", ["/jobs", "/tag"])
    def test_json_over_the_limit_is_refused(self, http: httpx.Client, path: str) -> None:
        body = b'{"model": "' + b"x" * 400_000 + b'"}'
        headers = {"Content-Type": "application/json"}
        assert_problem(http.post(path, content=body, headers=headers), 413, "body_too_large")

    @pytest.mark.parametrize("path", ["/jobs", "/tag"])
    @pytest.mark.parametrize("body", ["[]", "null", "3", '"train"'])
    def test_json_that_is_no_object_is_refused(self, http: httpx.Client, path: str, body: str) -> None:
        response = http.post(path, content=body, headers={"Content-Type": "application/json"})
        assert response.status_code == 422
        assert_problem(response, 422, response.json()["code"])


class TestTagging:
    """Every /tag request that cannot be answered."""

    @pytest.mark.parametrize(
        ("body", "status", "code", "pointer"),
        [
            ({"sentences": []}, 422, "invalid_request", "/model"),
            ({"model": "chunker"}, 422, "invalid_request", "/sentences"),
            ({"model": 3, "sentences": []}, 422, "invalid_request", "/model"),
            ({"model": "chunker", "sentences": "He"}, 422, "invalid_request", "/sentences"),
            ({"model": "chunker", "sentences": ["He"]}, 422, "invalid_request", "/sentences/0"),
            ({"model": "chunker", "sentences": [], "output": "xml"}, 422, "invalid_request", "/output"),
            ({"model": "chunker", "sentences": [], "colour": 1}, 422, "invalid_request", "/colour"),
            ({"model": "Chunker!", "sentences": []}, 422, "invalid_reference", "/model"),
            ({"model": "chunker:0", "sentences": []}, 422, "invalid_reference", "/model"),
            ({"model": "chunker:x", "sentences": []}, 422, "invalid_reference", "/model"),
            ({"model": "chunker@a@b", "sentences": []}, 422, "invalid_reference", "/model"),
            ({"model": "chunker\u0000", "sentences": []}, 422, "invalid_reference", "/model"),
            ({"model": "x" * 201, "sentences": []}, 422, "invalid_request", "/model"),
            ({"model": "nobody", "sentences": []}, 404, "model_not_found", "/model"),
            ({"model": "nobody@champion", "sentences": []}, 404, "model_not_found", "/model"),
            ({"model": "nobody:7", "sentences": []}, 404, "model_not_found", "/model"),
            ({"model": "chunker", "sentences": [[]] * 1_001}, 413, "too_many_tokens", "/sentences"),
            ({"model": "chunker", "sentences": [["a"] * 5_001]}, 413, "too_many_tokens", "/sentences"),
        ],
    )
    def test_a_wrong_request_is_pointed_at(
        self, http: httpx.Client, body: dict[str, Any], status: int, code: str, pointer: str
    ) -> None:
        assert_problem(http.post("/tag", json=body), status, code, pointer=pointer)


class TestAddresses:
    """Things that are not there, and parameters out of range."""

    @pytest.mark.parametrize(
        ("method", "path", "code"),
        [
            ("GET", "/corpora/crp_00000000000000000000000000", "corpus_not_found"),
            ("GET", "/corpora/nonsense", "corpus_not_found"),
            ("GET", "/corpora/crp_x/report", "corpus_not_found"),
            ("GET", "/corpora/crp_x/content", "corpus_not_found"),
            ("DELETE", "/corpora/crp_x", "corpus_not_found"),
            ("GET", "/jobs/job_00000000000000000000000000", "job_not_found"),
            ("GET", "/jobs/job_x/events", "job_not_found"),
            ("POST", "/jobs/job_x/cancel", "job_not_found"),
            ("GET", "/models/nobody", "model_not_found"),
            ("GET", "/models/nobody/versions", "model_not_found"),
            ("GET", "/models/nobody/versions/1", "model_not_found"),
            ("GET", "/models/nobody/versions/1/artifact", "model_not_found"),
            ("DELETE", "/models/nobody/versions/1", "model_not_found"),
            ("GET", "/models/nobody/aliases", "model_not_found"),
            ("GET", "/models/nobody/aliases/champion", "model_not_found"),
            ("GET", "/models/nobody/aliases/champion/history", "model_not_found"),
            ("POST", "/models/nobody/aliases/champion/rollback", "model_not_found"),
        ],
    )
    def test_what_does_not_exist_is_not_found(
        self, http: httpx.Client, method: str, path: str, code: str
    ) -> None:
        assert_problem(http.request(method, path), 404, code)

    def test_an_event_stream_of_an_unknown_job_is_not_found(self, http: httpx.Client) -> None:
        response = http.get("/jobs/job_x/events", headers={"Accept": "text/event-stream"})
        assert_problem(response, 404, "job_not_found")

    @pytest.mark.parametrize(
        "path",
        ["/models/Bad Name", "/models/bad name/versions", "/models/a/aliases/B", "/models/" + "x" * 65],
    )
    def test_a_name_outside_the_alphabet_is_refused(self, http: httpx.Client, path: str) -> None:
        parameter = "alias" if "aliases" in path else "name"
        assert_problem(
            http.get(path), 422, "invalid_request", parameter=parameter, reason="Names use lower-case letters"
        )

    @pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", "99999999999999999999", "2147483648"])
    def test_a_version_that_is_no_number_is_refused(self, http: httpx.Client, number: str) -> None:
        response = http.get(f"/models/nobody/versions/{number}")
        assert_problem(response, 422, "invalid_request", parameter="number")

    @pytest.mark.parametrize(
        "path", ["/corpora/%00", "/jobs/a%00b", "/models/%FF", "/models/a/aliases/%ED%A0%80"]
    )
    def test_a_path_that_is_no_text_is_refused(self, http: httpx.Client, path: str) -> None:
        problem = assert_problem(http.get(path), 422, "invalid_address")
        assert problem["errors"]

    @pytest.mark.parametrize("path", ["/corpora", "/jobs", "/models"])
    @pytest.mark.parametrize("limit", ["0", "-5", "501", "x", "", "99999999999999999999999"])
    def test_a_limit_out_of_range_is_refused(self, http: httpx.Client, path: str, limit: str) -> None:
        assert_problem(http.get(path, params={"limit": limit}), 422, "invalid_request", parameter="limit")

    @pytest.mark.parametrize("path", ["/corpora", "/jobs", "/models"])
    @pytest.mark.parametrize("cursor", ["", "rubbish", "W10", "e30", "bnVsbA", "äöü", "%", "=" * 50])
    def test_a_cursor_of_no_list_is_refused(self, http: httpx.Client, path: str, cursor: str) -> None:
        response = http.get(path, params={"cursor": cursor})
        assert_problem(response, 422, "invalid_cursor", parameter="cursor")

    def test_a_cursor_too_long_is_refused(self, http: httpx.Client) -> None:
        response = http.get("/corpora", params={"cursor": "x" * 1001})
        assert_problem(response, 422, "invalid_request", parameter="cursor", reason="at most 1000")

    @pytest.mark.parametrize(
        ("params", "parameter"), [({"state": "dancing"}, "state"), ({"model": "Bad Name"}, "model")]
    )
    def test_a_filter_that_can_match_nothing_is_refused(
        self, http: httpx.Client, params: dict[str, str], parameter: str
    ) -> None:
        assert_problem(http.get("/jobs", params=params), 422, "invalid_request", parameter=parameter)

    @pytest.mark.parametrize("after", ["-1", "x", "99999999999999999999"])
    def test_an_event_number_out_of_range_is_refused(self, http: httpx.Client, after: str) -> None:
        response = http.get("/jobs/job_x/events", params={"after": after})
        assert_problem(response, 422, "invalid_request", parameter="after")

    def test_a_last_event_id_that_is_no_number_is_refused(self, http: httpx.Client) -> None:
        headers = {"Last-Event-ID": "seven", "Accept": "text/event-stream"}
        response = http.get("/jobs/job_x/events", headers=headers)
        assert_problem(response, 422, "invalid_request", parameter="last-event-id")

    def test_an_id_too_long_is_refused(self, http: httpx.Client) -> None:
        assert_problem(http.get("/corpora/" + "x" * 221), 422, "invalid_request", parameter="corpus_id")
