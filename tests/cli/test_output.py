"""What people read: ages, sizes, sparklines, tables; and names for completion."""

import time
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from tagsmith.cli import complete, errors, options, output
from tagsmith.client import ApiError
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.features.presets import Preset
from tagsmith.core.learn.trainers.registry import SPECS
from tagsmith.wire.names import DEFAULT_ALIAS


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "just now"), (5, "5 s ago"), (150, "2 min ago"), (7300, "2 h ago"), (3 * 86_400 + 5, "3 d ago")],
)
def test_times_are_ages(seconds: float, words: str) -> None:
    assert output.when(datetime.now(UTC) - timedelta(seconds=seconds)) == words


def test_times_are_local_dates_on_request_and_when_they_are_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    at = datetime(2020, 2, 3, 18, 30, tzinfo=UTC)
    try:
        assert output.when(at) == "2020-02-04"
        assert output.when(at, dates=True) == "2020-02-04 03:30"
    finally:
        monkeypatch.undo()
        time.tzset()
    assert output.when(None) == ""


def test_durations_and_sizes_have_few_digits() -> None:
    assert [output.duration(each) for each in (0.31, 12.4, 75, 3725)] == [
        "0.3 s",
        "12 s",
        "1:15 min",
        "1:02:05",
    ]
    assert [output.size(each) for each in (12, 23_200, 159_000, 1_640_000)] == [
        "12 B",
        "23.2 kB",
        "159 kB",
        "1.6 MB",
    ]


def test_a_sparkline_goes_from_the_lowest_to_the_highest_value() -> None:
    assert output.sparkline([1, 2, 3, 4, 5, 6, 7, 8]) == "▁▂▃▄▅▆▇█"
    assert output.sparkline([5, 5, 5]) == "▁▁▁"
    assert output.sparkline([1.0]) == ""
    many = output.sparkline(list(range(1000)))
    assert (len(many), many[0], many[-1]) == (output.SPARK_POINTS, "▁", "█")


def test_a_table_is_aligned_and_has_no_colours_and_no_trailing_blanks_without_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output.print_table(["NAME", "COUNT"], [["[bold]a[/]", "1,000"], ["long name", "1"]], right=["COUNT"])
    assert capsys.readouterr().out == "NAME       COUNT\na          1,000\nlong name      1\n"


def test_names_of_users_are_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    output.say(output.escaped("[red]name[/]"))
    assert capsys.readouterr().out == "[red]name[/]\n"


def test_the_score_is_f1_of_spans_and_accuracy_of_classes() -> None:
    spans = {"f1": 90.0, "accuracy": 99.0, "gold": 5, "tokens": 100, "by_type": {}}
    assert output.score_of(spans) == ("F1", 90.0)
    assert output.score_of(spans | {"score": "accuracy"}) == ("accuracy", 99.0)
    assert output.score_of(None) is None


def test_completion_knows_all_trainers_presets_and_formats_without_importing_them() -> None:
    assert sorted(complete.trainers()) == sorted(spec.model_fields["kind"].default for spec in SPECS)
    assert complete.presets() == list(get_args(Preset))
    assert sorted(complete.formats()) == sorted(formats.known_formats())
    assert complete.trainers("sgd") == [kind for kind in complete.trainers() if kind.startswith("sgd")]


def test_the_default_alias_is_that_of_the_api() -> None:
    assert options.DEFAULT_ALIAS == DEFAULT_ALIAS


def test_codes_of_emoji_and_markup_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    name = "x:heart:y[bold]"
    output.say(output.escaped(name))
    output.print_table(["NAME"], [[output.escaped(name)]])
    assert capsys.readouterr().out.splitlines() == [name, "NAME", name]


@pytest.mark.parametrize(
    ("detail", "says"),
    [
        ("Correct the labels, or set the option repair=true.", "Correct the labels, or give --repair."),
        (
            "Pack pairs of .txt and .ann files for format=brat.",
            "Pack pairs of .txt and .ann files for --format brat.",
        ),
        ("Repeat with force to delete it.", "Repeat with --force to delete it."),
        ('Choose, or send "force": true with a reason.', "Choose, or give --force and --reason."),
    ],
)
def test_messages_have_the_options_of_the_command_line(detail: str, says: str) -> None:
    found = errors.shown(ApiError(422, {"code": "x", "detail": detail}))
    assert found is not None
    assert found.message == says
