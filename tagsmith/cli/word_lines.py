"""Input in CoNLL-U and CoNLL-X: the fields that are the columns of a model."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tagsmith.cli import inputs, recognition
from tagsmith.cli.errors import CommandError
from tagsmith.cli.recognition import ModelInput
from tagsmith.core.corpus.formats.recognition import Head
from tagsmith.core.corpus.formats.scan import fields as word_fields

#: A feature that numbers the words of a sentence. Readers of CoNLL-X leave it out.
_NUMBER = "id="


def places_of(name: str, model: ModelInput) -> list[int]:
    """Return the fields that are the columns of a model. Raise CommandError if a column is no field."""
    if model.columns in (1, None):
        return [word_fields.FORM]
    places = [place for place in word_fields.places_of(model.names) if place is not None]
    if len(places) != model.columns:
        raise CommandError(
            f"{name} needs the columns {', '.join(model.names)}, which are not all fields of CoNLL-U. Give columns."
        )
    return places


def row_of(places: Sequence[int]) -> Callable[[str, int], list[str] | None]:
    """Return the function that makes the row of a line; None for comments, ranges and empty nodes."""

    def row(line: str, number: int) -> list[str] | None:
        cells = line.split("\t")
        if not cells[0].isdigit() or len(cells) < 2:
            return None
        if len(cells) <= max(places):
            raise CommandError(
                f"Line {number:,} of the input has {len(cells)} fields. It needs {word_fields.WIDTH}."
            )
        return [_value(cells[place], place) for place in places]

    return row


def _value(cell: str, place: int) -> str:
    if place != word_fields.FEATS or _NUMBER not in cell:
        return cell
    kept = [each for each in cell.split("|") if not each.startswith(_NUMBER)]
    return "|".join(kept) or word_fields.EMPTY


def options_of_file(path: Path, model: ModelInput, *, labelled: bool = True) -> dict[str, str]:
    """Return the options that read a file as a parser needs it; see `reading_options`."""
    if not model.parses:
        return {}
    with inputs.opened(path) as source:
        head, _ = inputs.head_of(recognition.decoded(source), typed=False)
    return reading_options(head, model, labelled=labelled)


def reading_options(head: Head, model: ModelInput, *, labelled: bool) -> dict[str, str]:
    """Return the options that read a corpus as a parser needs it; none for other models and other corpora."""
    if not model.parses or not any(line.count("\t") == word_fields.WIDTH - 1 for line in head.filled):
        return {}
    from tagsmith.core.corpus.formats import registry  # noqa: PLC0415
    from tagsmith.core.corpus.formats.conllu import CONLLU  # noqa: PLC0415
    from tagsmith.core.corpus.formats.conllx import CONLLX  # noqa: PLC0415

    lines = {"conllu": CONLLU, "conllx": CONLLX}.get(registry.recognised(head))
    fields = None if lines is None else word_fields.named_fields(model.names, lines.fields)
    if fields is None:
        return {}
    return {"columns": ",".join(fields), "label": "tree"} | ({} if labelled else {"labelled": "false"})
