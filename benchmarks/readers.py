"""How fast corpora are read and written, by format, compared with plain Python that splits lines and numbers strings.

python -m benchmarks.readers --data ../shared/data
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, get_args

from benchmarks import common
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.labels.codings import LabelCoding, recode

MAX_LINE_BYTES = 1 << 20

#: Chunk size of an upload.
CHUNK_BYTES = 1 << 20

Rows = Iterator[list[str] | None]  # the fields of a token, or None between sentences


def chunks(data: bytes) -> Iterator[bytes]:
    return (data[i : i + CHUNK_BYTES] for i in range(0, len(data), CHUNK_BYTES))


def conll_rows(data: bytes) -> Rows:
    for line in data.decode().splitlines():
        yield line.split() or None


def conllu_rows(data: bytes) -> Rows:
    for line in data.decode().splitlines():
        fields = line.split("\t")
        if not line:
            yield None
        elif fields[0].isdigit():
            yield [fields[1], fields[3]]


def segmented_rows(data: bytes) -> Rows:
    for line in data.decode().splitlines():
        for item in line.split():
            word, _, tag = item.rpartition("/")
            for place, character in enumerate(word):
                label = (
                    "S" if len(word) == 1 else "B" if place == 0 else "E" if place == len(word) - 1 else "M"
                )
                yield [character, f"{label}-{tag}"]
        yield None


def in_python(rows: Rows) -> tuple[list[list[int]], list[int]]:
    """Build columns of numbers and sentence ends, as a simple script would."""
    tables: list[dict[str, int]] = []
    columns: list[list[int]] = []
    ends = []
    for row in rows:
        if row is None:
            ends.append(len(columns[0]) if columns else 0)
            continue
        if not columns:
            tables, columns = [{} for _ in row], [[] for _ in row]
        for field, table, column in zip(row, tables, columns, strict=True):
            column.append(table.setdefault(field, len(table)))
    return columns, ends


def measured(
    data: bytes, name: str, options: dict[str, str], rounds: int, peer: Callable[[bytes], Rows] | None
) -> dict[str, Any]:
    def read() -> Corpus:
        return formats.read(chunks(data), name, max_line_bytes=MAX_LINE_BYTES, options=options)

    corpus = read()
    own = {key: value for key, value in options.items() if key in formats.option_models()[name].model_fields}
    contenders: dict[str, Callable[[], float]] = {
        "read": lambda: common.timed(read),
        "write": lambda: common.timed(lambda: sum(map(len, formats.write(corpus, name, own)))),
    }
    if peer is not None:
        contenders["python"] = lambda: common.timed(lambda: in_python(peer(data)))
    seconds = common.alternate(contenders, rounds)
    written = sum(map(len, formats.write(corpus, name, own)))
    result = {
        "options": options,
        "megabytes": round(len(data) / 1e6, 2),
        "tokens": corpus.tokens,
        "read_mb_per_s": round(len(data) / 1e6 / median(seconds["read"]), 1),
        "read_tokens_per_s": round(corpus.tokens / median(seconds["read"])),
        "write_mb_per_s": round(written / 1e6 / median(seconds["write"]), 1),
        "contenders": common.summary(seconds, "read"),
    }
    print(name, result["read_mb_per_s"], "MB/s read,", result["write_mb_per_s"], "MB/s written", flush=True)
    return result


def measure_codings(corpus: Corpus, rounds: int) -> dict[str, int]:
    """Tokens per second from IOB2 to each other coding."""
    result = {}
    for coding in get_args(LabelCoding):
        into = partial(recode, corpus, coding, repair=False)
        seconds = [common.timed(into) for _ in range(rounds)]
        result[coding] = round(corpus.tokens / median(seconds))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    data, rounds = options.data, options.rounds
    formats.warm()
    conll = common.read(data / "conll2000" / "train.txt")
    corpus = formats.read([conll], "conll", max_line_bytes=MAX_LINE_BYTES)
    zipped = b"".join(formats.write(corpus, "brat"))
    pku = common.read(data / "pku_cws" / "199801.txt")
    ewt = common.read(data / "ud_english_ewt" / "en_ewt-ud-train.conllu")
    result = {
        "conll, CoNLL-2000 train": measured(conll, "conll", {}, rounds, conll_rows),
        "conllu, UD English EWT train": measured(ewt, "conllu", {}, rounds, conllu_rows),
        "segmented, PKU January 1998": measured(pku, "segmented", {"tags": "use"}, rounds, segmented_rows),
        "brat, CoNLL-2000 train": measured(zipped, "brat", {"tokens": "blanks"}, rounds, None),
        "label_codings_tokens_per_s": measure_codings(corpus, rounds),
    }
    print(common.record("readers", result).read_text())


if __name__ == "__main__":
    main()
