"""Wrong input, case by case: what is wrong, where and why, and nothing stored."""

import gzip
import json
from typing import Any

import httpx
import pytest
import zstandard

from tests.app import samples
from tests.app.servers import ThreadServer, assert_problem

pytestmark = pytest.mark.usefixtures("unchanged")

GOOD = samples.TEXT
spec = samples.spec


@pytest.fixture(scope="module")
def corpus_id(server: ThreadServer) -> str:
    return str(httpx.post(f"{server.url}/corpora", content=GOOD).json()["id"])


class TestUploads:
    """Every file that is no corpus."""

    @pytest.mark.parametrize(
        ("text", "line", "reason"),
        [
            (b"a X L\nb L\nc X L\n", 2, "expected 3 columns as in line 1, found 2"),
            (b"a X L\n\nb Y Z L\n", 3, "expected 3 columns as in line 1, found 4"),
            (b"a X L\n\xff\xfe X L\n", 2, "not UTF-8: byte 0xFF at byte 1"),
            (b"a X L\nb\x00 X L\n", 2, "control byte 0x00 at byte 2"),
            (b"only\none\ncolumn\n", 1, "a labelled corpus needs at least 2"),
            (b"a X L\n" + b"x" * 2000 + b" X L\n", 2, "longer than 1000 bytes"),
        ],
    )
    def test_a_faulty_line_is_named(self, http: httpx.Client, text: bytes, line: int, reason: str) -> None:
        assert_problem(http.post("/corpora", content=text), 422, "invalid_corpus", line=line, reason=reason)

    def test_a_hundred_faults_are_named_and_no_more(self, http: httpx.Client) -> None:
        text = b"a X L\n" + b"ragged L\n" * 500
        problem = assert_problem(http.post("/corpora", content=text), 422, "invalid_corpus")
        assert [place["line"] for place in problem["errors"]] == list(range(2, 102))

    @pytest.mark.parametrize("text", [b"", b"\n\n \n\t\n", b"\xef\xbb\xbf"])
    def test_an_empty_file_is_refused(self, http: httpx.Client, text: bytes) -> None:
        assert_problem(http.post("/corpora", content=text), 422, "empty_corpus", line=1, reason="no token")

    @pytest.mark.parametrize(
        ("encoding", "body", "reason"),
        [
            ("gzip", b"this is not gzip", "incorrect header check"),
            ("gzip", gzip.compress(GOOD, mtime=0)[:-9], "the data is truncated"),
            ("gzip", gzip.compress(GOOD, mtime=0)[:-8] + b"\0\0\0\0\0\0\0\0", "incorrect data check"),
            ("gzip", b"", "the data is truncated"),
            ("zstd", b"this is not zstd", "Unknown frame descriptor"),
            ("zstd", zstandard.compress(GOOD)[:-3], "the data is truncated"),
        ],
    )
    def test_broken_compression_is_refused(
        self, http: httpx.Client, encoding: str, body: bytes, reason: str
    ) -> None:
        response = http.post("/corpora", content=body, headers={"Content-Encoding": encoding})
        assert_problem(response, 422, "corrupt_encoding", reason=reason)

    @pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
    def test_a_bomb_meets_the_limit_of_decoded_bytes(self, http: httpx.Client, compress: Any) -> None:
        body = compress(b"\n" * 50_000_000)
        assert len(body) < 100_000
        encoding = "gzip" if compress is gzip.compress else "zstd"
        response = http.post("/corpora", content=body, headers={"Content-Encoding": encoding})
        assert_problem(response, 413, "corpus_too_large")

    def test_an_unknown_encoding_is_refused(self, http: httpx.Client) -> None:
        response = http.post("/corpora", content=GOOD, headers={"Content-Encoding": "br"})
        assert_problem(response, 415, "unsupported_encoding")

    def test_an_unknown_format_is_refused(self, http: httpx.Client) -> None:
        response = http.post("/corpora", params={"format": "word-perfect"}, content=GOOD)
        assert_problem(response, 422, "unknown_format", parameter="format", reason="Use one of: conll")

    def test_a_body_over_the_limit_is_refused_whether_its_length_is_announced_or_not(
        self, http: httpx.Client
    ) -> None:
        body = b"a X L\n" * 50_000
        assert_problem(http.post("/corpora", content=body), 413, "body_too_large")
        chunks = (body[i : i + 10_000] for i in range(0, len(body), 10_000))
        assert_problem(http.post("/corpora", content=chunks), 413, "body_too_large")

    @pytest.mark.parametrize(
        ("name", "reason"), [("x" * 201, "at most 200"), ("a\nb", "match pattern"), ("", "at least 1")]
    )
    def test_a_name_that_is_too_long_or_not_plain_is_refused(
        self, http: httpx.Client, name: str, reason: str
    ) -> None:
        response = http.post("/corpora", params={"name": name}, content=GOOD)
        assert_problem(response, 422, "invalid_request", parameter="name", reason=reason)

    @pytest.mark.parametrize(
        ("query", "reason"),
        [("name=a%00b", "NUL"), ("name=%ED%A0%80", "not UTF-8"), ("name=%FF", "not UTF-8")],
    )
    def test_a_name_that_is_no_text_is_refused(self, http: httpx.Client, query: str, reason: str) -> None:
        response = http.post(f"/corpora?{query}", content=GOOD)
        assert_problem(response, 422, "invalid_address", parameter="name", reason=reason)

    def test_multipart_without_a_file_or_with_two_is_refused(self, http: httpx.Client) -> None:
        field = {"name": (None, "news")}
        assert_problem(http.post("/corpora", files=field), 422, "no_file_part")
        response = http.post(
            "/corpora", content=b"--x--\r\n", headers={"Content-Type": "multipart/form-data; boundary=x"}
        )
        assert_problem(response, 422, "no_file_part")
        two = [("file", ("a", GOOD)), ("file", ("b", GOOD))]
        assert_problem(http.post("/corpora", files=two), 422, "too_many_parts")

    @pytest.mark.parametrize(
        ("content_type", "body"),
        [
            ("multipart/form-data", b"--x\r\n"),
            ("multipart/form-data; boundary=x", b"rubbish"),
            (
                "multipart/form-data; boundary=x",
                b'--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n',
            ),
            ("multipart/form-data; boundary=" + "x" * 500, b"--x\r\n"),
        ],
    )
    def test_broken_multipart_is_refused(self, http: httpx.Client, content_type: str, body: bytes) -> None:
        response = http.post("/corpora", content=body, headers={"Content-Type": content_type})
        assert_problem(response, 400, "malformed_multipart")


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
