"""Suggestions for misspelt names."""

import pytest

from tagsmith.core.base.suggest import MAX_KNOWN, did_you_mean, unknown

KNOWN = ["passes", "l1", "max_seconds", "champion", "sgd-l1"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pases", "passes"),
        ("Passes", "passes"),
        ("max-seconds", "max_seconds"),
        ("champoin", "champion"),
        ("sgd_l1", "sgd-l1"),
        ("sgdl1", "sgd-l1"),
        ("temperature", None),
        ("", None),
        ("x" * 10_000, None),
    ],
)
def test_a_similar_name_is_suggested_and_no_other(name: str, expected: str | None) -> None:
    assert did_you_mean(name, KNOWN) == expected


def test_the_message_names_the_guess_and_what_is_known() -> None:
    said = unknown("field", "pases", KNOWN)
    assert said == (
        "unknown field `pases`; did you mean `passes`? Known: passes, l1, max_seconds, champion, sgd-l1"
    )
    assert unknown("alias", "x", []) == "unknown alias `x`."
    many = [f"name{number}" for number in range(MAX_KNOWN + 3)]
    assert unknown("model", "zz", many).endswith("and 3 more")
