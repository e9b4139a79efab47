"""Feed the readers what a fuzzer guided by coverage comes up with, for so many seconds a format.

    pip install atheris && python -m benchmarks.fuzz --seconds 60

A reader must give a corpus or an error with a code and places; anything else ends the run with the input that did it.
Kernels are run as plain Python (`NUMBA_DISABLE_JIT`), so that the fuzzer sees into them and their bounds are checked.
"""

import argparse
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

#: A run ends as a hang when one input takes longer.
HANG_S = 5

#: What the fuzzer begins with, by format.
SEEDS = {
    "conll": [b"a X B-NP\nb Y I-NP\n\n-DOCSTART- x O\nc Z O\n"],
    "conllu": [
        b"# c\n1-2\tab"
        + b"\t_" * 8
        + b"\n1\ta"
        + b"\t_" * 8
        + b"\n2\tb"
        + b"\t_" * 8
        + b"\n2.1\tc"
        + b"\t_" * 8
        + b"\n\n"
    ],
    "segmented": ["上海/n  市/n \u3000a/b/c\n".encode()],
    "brat": [],
}


def _archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("a.txt", "Ada in London\n")
        out.writestr("a.ann", "T1\tPER 0 3\tAda\nT2\tLOC 7 13\tLondon\n")
    return file.getvalue()


def fuzz(name: str, seconds: int, folder: str) -> None:
    """Run in this process, which ends with it."""
    import atheris  # noqa: PLC0415  # not among the requirements: it is large, and only this file uses it

    with atheris.instrument_imports(include=["core.corpus", "core.evaluate"]):
        from core.corpus import formats  # noqa: PLC0415
        from core.corpus.report import report  # noqa: PLC0415
        from core.errors import TagsmithError  # noqa: PLC0415

    choices = {
        "conll": [{}, {"labels": "bioes", "repair": "true"}],
        "conllu": [{}, {"columns": "id,form,feats", "label": "misc"}],
        "segmented": [
            {"coding": "6"},
            {"tags": "use", "coding": "2"},
            {"tags": "strip", "labelled": "false"},
        ],
        "brat": [{}, {"tokens": "blanks", "conflicts": "resolve"}],
    }[name]

    def one(data: bytes) -> None:
        if len(data) < 2:
            return
        options, size = choices[data[0] % len(choices)], data[1] + 1
        text = data[2:]
        try:
            reading = formats.reader(name, max_line_bytes=100, max_text_bytes=1 << 16, options=options)
            for begin in range(0, len(text), size):
                reading.feed(text[begin : begin + size])
            report(reading.finish())
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=60, help="for each format")
    parser.add_argument("--format", choices=list(SEEDS), help="this one only")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        fuzz(options.format, options.seconds, options.child)
        return
    for name in [options.format] if options.format else SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            for number, seed in enumerate([*SEEDS[name], *([_archive()] if name == "brat" else [])]):
                (Path(folder) / str(number)).write_bytes(b"\0\x40" + seed)
            command = [sys.executable, "-m", "benchmarks.fuzz", "--format", name, "--child", folder]
            environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
            ended = subprocess.run(
                [*command, "--seconds", str(options.seconds)],
                env=environment,
                check=False,
                capture_output=True,
                text=True,
            )
            said = [
                line for line in ended.stderr.splitlines() if line.startswith(("stat::number_of", "Done"))
            ]
            print(f"{name}: exit code {ended.returncode}; {'; '.join(said)}", flush=True)
            if ended.returncode:
                print(ended.stderr[-5000:])
                sys.exit(1)


if __name__ == "__main__":
    main()
