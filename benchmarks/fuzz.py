"""Coverage-guided fuzzing of corpus readers, lexicons and template parsers, for a number of seconds each.

    pip install atheris && python -m benchmarks.fuzz --seconds 60 [--target wapiti]

A reader must return a corpus, or raise an error with a code and locations. A parser must return templates that print
and parse to themselves, or raise such an error. Anything else, and an input that takes too long, ends the run and
shows the input. Kernels run as plain Python (`NUMBA_DISABLE_JIT`), so that the fuzzer sees their branches and their
bounds are checked.
"""

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import common

#: Maximum time of one input; a longer one counts as a hang.
HANG_S = 5
#: Maximum length of a line.
LINE_BYTES = 100

#: The input, cut into chunks, and a number that selects the options.
Target = Callable[[list[bytes], int], None]


def _archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("a.txt", "Ada in London\n")
        out.writestr("a.ann", "T1\tPER 0 3\tAda\nT2\tLOC 7 13\tLondon\n")
    return file.getvalue()


def _conllu(*fields: str) -> str:
    return "\t".join([*fields, *["_"] * (10 - len(fields))]) + "\n"


#: The initial inputs of the fuzzer. The first four lexicons are one of each kind, by its number.
SEEDS: dict[str, list[bytes]] = {
    "conll": [b"a X B-NP\nb Y I-NP\n\n-DOCSTART- x O\nc Z O\n"],
    "conllu": [("# c\n" + "".join(map(_conllu, ("1-2", "1", "2", "2.1"), "abcd")) + "\n").encode()],
    "crfsuite": [b"B-NP\tw=a\tlen:2.5\tc\\:d\\\\:1e-3\nO\tw=b\n\nO\t__BOS__\n"],
    "ndjson": [
        b'{"tokens": ["a", "b"], "tags": ["B-X", "O"]}\n{"tokens": [["a", "NN"]], "tags": ["O"]}\n',
        b'{"tokens": [{"w=a": 1, "len": 2.5}], "tags": ["B-X"]}\n',
    ],
    "segmented": ["上海/n  市/n \u3000a/b/c\n".encode()],
    "brat": [_archive()],
    "spans": [
        b'{"text": "Ada ran. She won", "spans": [[0, 3, "PER"], {"start": 9, "end": 12, "label": "PER"}]}\n'
    ],
    "lexicon": [b"New York\nAda\n", b"LOC\tNew York\n", b"Aa01 man woman\n", b"0110\tword\t12\n"],
    "crf++": [b"# words\nU00:%x[-1,0]/%x[0,1]\nU01:%x[0,shape]\nB\n"],
    "wapiti": [b'*:%x[ 0,0]\nu1:%X[@-1,1]/%t[0,0,"^\\u\\l*$"] # c\nb:%m[@1,0,"..$"]\n'],
    "short": [
        b'[["word[-1]", "word[0]"], "1[@-1]", {"join": ["word"], "edge": "both", "name": "w"}, {"edge": true}]',
        b'[{"grams": 2, "columns": ["word"], "window": [-1, 1]}]',
    ],
}
#: Options of the formats; one of each list is chosen.
OPTIONS: dict[str, list[dict[str, str]]] = {
    "conll": [{}, {"labels": "bioes", "repair": "true"}, {"names": "a,b", "columns": "b"}],
    "conllu": [{}, {"columns": "id,form,feats", "label": "misc"}],
    "crfsuite": [{}, {"labels": "iob1"}],
    "ndjson": [{}, {"labels": "bilou", "repair": "true"}],
    "segmented": [{"coding": "6"}, {"tags": "use", "coding": "2"}, {"tags": "strip", "labelled": "false"}],
    "brat": [{}, {"tokens": "blanks", "conflicts": "resolve"}],
    "spans": [{}, {"tokenizer": "blanks", "conflicts": "resolve"}],
}


def reading(name: str) -> Target:
    """A corpus in one of the formats."""
    # Imported under instrumentation, like all modules of this project here.
    from tagsmith.core.corpus.formats import registry as formats  # noqa: PLC0415
    from tagsmith.core.corpus.report import report  # noqa: PLC0415

    def read(pieces: list[bytes], choice: int) -> None:
        options = OPTIONS[name][choice % len(OPTIONS[name])]
        reader = formats.reader(name, max_line_bytes=LINE_BYTES, max_text_bytes=1 << 16, options=options)
        for piece in pieces:
            reader.feed(piece)
        report(reader.finish())

    return read


def looking_up() -> Target:
    """A lexicon of any kind."""
    from tagsmith.core.features.lexicon.lexicon import KINDS, read_lexicon  # noqa: PLC0415

    def read(pieces: list[bytes], choice: int) -> None:
        read_lexicon(KINDS[choice % len(KINDS)], pieces, max_line_bytes=LINE_BYTES)

    return read


def parsing(syntax: str) -> Target:
    """Templates, printed in their own syntax and parsed again. Other syntaxes may refuse them."""
    from tagsmith.core.base.errors import Invalid  # noqa: PLC0415
    from tagsmith.core.features.templates.crfpp import parse_crfpp  # noqa: PLC0415
    from tagsmith.core.features.templates.printing import (  # noqa: PLC0415
        print_crfpp,
        print_short,
        print_wapiti,
    )
    from tagsmith.core.features.templates.short import parse_short  # noqa: PLC0415
    from tagsmith.core.features.templates.wapiti import parse_wapiti  # noqa: PLC0415

    syntaxes: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
        "crf++": (parse_crfpp, print_crfpp),
        "wapiti": (parse_wapiti, print_wapiti),
        "short": (parse_short, print_short),
    }

    def parse(pieces: list[bytes], _choice: int) -> None:
        source: Any = b"".join(pieces).decode(errors="replace")
        if syntax == "short":
            try:
                source = json.loads(source)
            except (ValueError, RecursionError):
                return
            if not isinstance(source, list):
                return
        templates = syntaxes[syntax][0](source)
        for name, (parse_again, print_as) in syntaxes.items():
            try:
                printed = print_as(templates)
            except Invalid:
                if name == syntax:
                    raise AssertionError("not sayable in its own syntax") from None
                continue
            try:
                again = parse_again(printed)
            except Invalid as error:
                raise AssertionError(f"{name} does not read {printed!r}") from error
            if [t.slots for t in again] != [t.slots for t in templates] or (
                name == syntax and again != templates
            ):
                raise AssertionError(f"{name} says {printed!r}")

    return parse


def fuzz(name: str, seconds: int, folder: str) -> None:
    """Run a target in this process and exit."""
    import atheris  # noqa: PLC0415  # not in the requirements: it is large and only used here

    with atheris.instrument_imports(
        include=[
            "tagsmith.core.corpus",
            "tagsmith.core.evaluate",
            "tagsmith.core.features",
            "tagsmith.core.features.lexicon",
        ]
    ):
        from tagsmith.core.base.errors import TagsmithError  # noqa: PLC0415

        target = reading(name) if name in OPTIONS else looking_up() if name == "lexicon" else parsing(name)

    def one(data: bytes) -> None:
        if len(data) < 2:
            return
        size, text = data[1] + 1, data[2:]
        try:
            target([text[begin : begin + size] for begin in range(0, len(text), size)], data[0])
        except TagsmithError as error:
            if not error.faults and error.code != "corpus_too_large":
                raise AssertionError("an error without a place") from error

    atheris.Setup(
        [
            sys.argv[0],
            folder,
            f"-max_total_time={seconds}",
            f"-timeout={HANG_S}",
            "-max_len=1024",
            "-print_final_stats=1",
        ],
        one,
    )
    atheris.Fuzz()


def run_child(name: str, seconds: int) -> int:
    """Return the number of inputs that a target handled. Exits with the output of the fuzzer if one failed."""
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(SEEDS[name]):
            (Path(folder) / str(number)).write_bytes(bytes([number, 0x40]) + seed)
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "benchmarks.fuzz"),
                *("--target", name, "--child", folder, "--seconds", str(seconds)),
            ],
            env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
            check=False,
            capture_output=True,
            text=True,
        )
    done = re.search(r"^Done (\d+) runs", ended.stderr, re.MULTILINE)
    if ended.returncode or done is None:
        sys.exit(f"{name}: exit code {ended.returncode}\n{ended.stderr[-5000:]}")
    return int(done[1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--target", choices=list(SEEDS), help="this one only")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        fuzz(options.target, options.seconds, options.child)
        return
    result = common.recorded("fuzz")
    for name in [options.target] if options.target else SEEDS:
        runs = run_child(name, options.seconds)
        result[name] = {**common.moment(), "seconds": options.seconds, "inputs": runs}
        print(f"{name}: {runs:,} inputs", flush=True)
        common.record("fuzz", result)


if __name__ == "__main__":
    main()
