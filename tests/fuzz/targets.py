"""What is fuzzed: everything that reads what a user sends.

A target gets an input in pieces and a number that chooses its options. It returns, or raises an error of this project
with a code and, where there is one, the place of the fault. Any other exception is a failure.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tagsmith.app.features import request as previews
from tagsmith.app.http import bodies
from tagsmith.app.tagging import parsing as tagging
from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.regex import Regex
from tagsmith.core.corpus.content_encoding import Decoder
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.report import report
from tagsmith.core.features.lexicon.lexicon import KINDS, read_lexicon
from tagsmith.core.features.templates.crfpp import parse_crfpp
from tagsmith.core.features.templates.printing import print_crfpp, print_short, print_wapiti
from tagsmith.core.features.templates.short import parse_short
from tagsmith.core.features.templates.wapiti import parse_wapiti
from tagsmith.core.jobs import kinds
from tagsmith.core.model import importing
from tagsmith.core.model.file import MAGIC
from tagsmith.core.model.tagger import Tagger
from tests.fuzz import seeds

#: Small limits, so that inputs reach them.
LINE_BYTES = 100
TEXT_BYTES = 1 << 16
SENTENCES = [[["New", "NNP"], ["York", "x"], ["", "."]], [["上", "海"]], [["é" * 40, "\x00"]]]


@dataclass(frozen=True, slots=True)
class Target:
    """Something that reads input."""

    name: str
    seeds: Callable[[], list[bytes]]
    #: Takes the pieces and the number.
    read: Callable[[list[bytes], int], object]
    #: Whether an error must name a place.
    placed: bool = True


#: Options of the corpus formats; one of each list is chosen.
OPTIONS: dict[str, list[dict[str, str]]] = {
    "conll": [{}, {"labels": "bioes", "repair": "true"}, {"names": "a,b", "columns": "b"}],
    "conllu": [{}, {"columns": "id,form,feats", "label": "misc"}, {"columns": "form,upos", "label": "tree"}],
    "conllx": [{}, {"columns": "form,feats"}, {"columns": "feats", "drop_feats": "", "label": "postag"}],
    "crfsuite": [{}, {"labels": "iob1"}],
    "ndjson": [{}, {"labels": "bilou", "repair": "true"}],
    "segmented": [{"coding": "6"}, {"tags": "use", "coding": "2"}, {"tags": "strip", "labelled": "false"}],
    "brat": [{}, {"tokens": "blanks", "conflicts": "resolve"}],
    "spans": [{}, {"tokenizer": "blanks", "conflicts": "resolve"}],
}


def _corpus(name: str) -> Callable[[list[bytes], int], object]:
    def read(pieces: list[bytes], choice: int) -> object:
        options = OPTIONS[name][choice % len(OPTIONS[name])]
        reader = formats.reader(name, max_line_bytes=LINE_BYTES, max_text_bytes=TEXT_BYTES, options=options)
        for piece in pieces:
            reader.feed(piece)
        return report(reader.finish())

    return read


def _upload(pieces: list[bytes], choice: int) -> object:
    """A corpus as it is uploaded: compression and format are recognised, or declared."""
    encoding = (None, None, "gzip", "zstd")[choice % 4]
    reader = formats.reader("auto", max_line_bytes=LINE_BYTES, max_text_bytes=TEXT_BYTES)
    decoder = Decoder(encoding, max_decoded_bytes=TEXT_BYTES, recognise=True, unzip=choice % 2 == 0)
    for piece in pieces:
        for plain in decoder.feed(piece):
            reader.feed(plain)
    for plain in decoder.finish():
        reader.feed(plain)
    return report(reader.finish())


def _lexicon(pieces: list[bytes], choice: int) -> object:
    return read_lexicon(KINDS[choice % len(KINDS)], pieces, max_line_bytes=LINE_BYTES)


SYNTAXES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "crf++": (parse_crfpp, print_crfpp),
    "wapiti": (parse_wapiti, print_wapiti),
    "short": (parse_short, print_short),
}


def _templates(syntax: str) -> Callable[[list[bytes], int], object]:
    """Templates, printed in their own syntax and parsed again. Other syntaxes may refuse them."""

    def read(pieces: list[bytes], _choice: int) -> object:
        source: Any = b"".join(pieces)
        source = bodies.parse_json(source) if syntax == "short" else source.decode(errors="replace")
        if syntax == "short" and not isinstance(source, list):
            return None
        templates = SYNTAXES[syntax][0](source)
        for name, (parse_again, print_as) in SYNTAXES.items():
            try:
                printed = print_as(templates)
            except Invalid:
                assert name != syntax, "not expressible in its own syntax"
                continue
            again = parse_again(printed)
            same = [each.slots for each in again] == [each.slots for each in templates]
            assert same, f"{name} reads {printed!r} differently"
            assert name != syntax or again == templates
        return templates

    return read


def _pattern(pieces: list[bytes], choice: int) -> object:
    text = b"".join(pieces).decode(errors="replace")
    try:
        regex = Regex(text, "wapiti" if choice % 2 else "extended")
    except ValueError as error:
        if "See character" not in str(error):
            raise
        raise Invalid(str(error)) from error
    return regex.find_all(["", "aab", "a" * 300 + "!", text[:50], "Zürich-12 \u2028"])


def _json(parse: Callable[[Any], object]) -> Callable[[list[bytes], int], object]:
    return lambda pieces, _choice: parse(bodies.parse_json(b"".join(pieces)))


def _tag_request(pieces: list[bytes], _choice: int) -> object:
    raw = b"".join(pieces)
    return tagging.read(raw, 100_000)


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="tagsmith-fuzz-"))


def _model(given: importing.ModelFormat | None) -> Callable[[list[bytes], int], object]:
    """A model file: imported, and used as the service uses it."""

    def read(pieces: list[bytes], _choice: int) -> object:
        return _imported(b"".join(pieces), given)

    return read


def _imported(content: bytes, given: importing.ModelFormat | None) -> object:
    source, target = _folder() / "source", _folder() / "target"
    source.unlink(missing_ok=True)  # the last one is still mapped
    target.unlink(missing_ok=True)
    source.write_bytes(content)
    model = importing.import_model(source, target, given).model
    tagger = Tagger(model)
    tagger.tag_probe()
    if model.features.columns:
        rows = [[row[: model.features.columns] for row in sentence] for sentence in SENTENCES]
        if model.features.columns <= len(SENTENCES[0][0]):
            found = [each.heads for each in tagger.parse(rows)] if tagger.is_parser else tagger.tag(rows)
            assert [len(each) for each in found] == [3, 1, 1]
    "".join(
        [*(model.attribute_name(i) for i in range(min(100, model.attributes.size))), *model.labels]
    ).encode()
    return model.labels


def _sealed_model(pieces: list[bytes], _choice: int) -> object:
    """A model file with right checksums around a header and arrays of any content."""
    data = b"".join(pieces)
    length = int.from_bytes(data[:4], "little")
    text, payload = data[4 : 4 + length], data[4 + length :]
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        header = None
    if isinstance(header, dict):
        text = json.dumps({**header, "sha256": hashlib.sha256(payload).hexdigest()}).encode()
    return _imported(
        MAGIC + len(text).to_bytes(8, "little") + hashlib.sha256(text).digest() + text + payload, "tagsmith"
    )


def _all() -> list[Target]:
    corpora = [Target(name, lambda name=name: seeds.CORPORA[name], _corpus(name)) for name in seeds.CORPORA]  # type: ignore[misc]
    syntaxes = [
        Target(f"templates-{name}", lambda name=name: seeds.TEMPLATES[name], _templates(name))  # type: ignore[misc]
        for name in SYNTAXES
    ]
    foreign: list[Target] = [
        Target(f"model-{name}", lambda name=name: seeds.foreign_models()[name], _model(name), placed=False)  # type: ignore[misc]
        for name in ("crfpp", "wapiti", "crfsuite")
    ]
    return [
        *corpora,
        Target("brat", seeds.brat, _corpus("brat")),
        Target("upload", seeds.compressed, _upload),
        Target("lexicon", lambda: seeds.LEXICONS, _lexicon),
        *syntaxes,
        Target("pattern", lambda: seeds.PATTERNS, _pattern, placed=False),
        Target("job", lambda: seeds.as_json(seeds.JOBS), _json(kinds.parse_job)),
        Target("preview", lambda: seeds.as_json(seeds.PREVIEWS), _json(previews.parse)),
        Target("tag-request", lambda: seeds.as_json(seeds.TAG_REQUESTS), _tag_request),
        *foreign,
        Target("model", seeds.models, _model(None), placed=False),
        Target("model-sealed", seeds.unsealed_models, _sealed_model, placed=False),
    ]


@cache
def targets() -> dict[str, Target]:
    """All targets by name."""
    return {each.name: each for each in _all()}
