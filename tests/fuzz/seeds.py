"""The first inputs of each target: small files that are valid, made by the project itself."""

import gzip
import io
import json
import lzma
import random
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pycrfsuite
import zstandard

from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.model.file import save
from tests.core.model.forging import rich_model, taken_apart, trees_model, words_model
from tests.core.model.strings import StringCrf, expanded

CORPORA: dict[str, list[bytes]] = {
    "conll": [b"a X B-NP\nb Y I-NP\n\n-DOCSTART- x O\nc Z O\n", b"# x\nAda\tB-PER\r\nran\tO\r\n"],
    "conllu": [
        (
            "# c\n"
            + "".join(
                f"{n}\t{w}" + "\t_" * 8 + "\n" for n, w in zip(("1-2", "1", "2", "2.1"), "abcd", strict=True)
            )
            + "\n"
        ).encode(),
        b"# weight = 2.5\n" + b"".join(generate("crossing-trees", 2, 1)),
    ],
    "conllx": [
        b"1\tTo\tto\tAC\tAC\tcase=u|id=43\t2\tsubj\t_\t_\n2\ttror\ttro\tVA\tVA\tid=44\t0\tROOT\t_\t_\n\n"
    ],
    "crfsuite": [b"B-NP\tw=a\tlen:2.5\tc\\:d\\\\:1e-3\nO\tw=b\n\nO\t__BOS__\n"],
    "ndjson": [
        b'{"tokens": ["a", "b"], "tags": ["B-X", "O"]}\n{"tokens": [["a", "NN"]], "tags": ["O"]}\n',
        b'{"tokens": [{"w=a": 1, "len": 2.5}], "tags": ["B-X"]}\n',
    ],
    "segmented": ["上海/n  市/n \u3000a/b/c\n".encode()],
    "spans": [
        b'{"text": "Ada ran. She won", "spans": [[0, 3, "PER"], {"start": 9, "end": 12, "label": "PER"}]}\n'
    ],
}
LEXICONS = [b"New York\nAda\n", b"LOC\tNew York\n", b"Aa01 man woman\n", b"0110\tword\t12\n"]
TEMPLATES: dict[str, list[bytes]] = {
    "crf++": [b"# words\nU00:%x[-1,0]/%x[0,1]\nU01:%x[0,shape]\nB\n"],
    "wapiti": [b'*:%x[ 0,0]\nu1:%X[@-1,1]/%t[0,0,"^\\u\\l*$"] # c\nb:%m[@1,0,"..$"]\n'],
    "short": [
        b'[["word[-1]", "word[0]"], "1[@-1]", {"join": ["word"], "edge": "both", "name": "w"}, {"edge": true}]',
        b'[{"grams": 2, "columns": ["word"], "window": [-1, 1]}]',
    ],
}
PATTERNS = [
    rb"^(a?){16}b$",
    rb"[[:alpha:]]+|[^0-9a-f-]*",
    rb"\p{Lu}\w+(-\w+){2,3}",
    rb"^\u\l*\d?$",
    rb"(a|b*)+\.$",
]
JOBS: list[dict[str, Any]] = [
    {
        "kind": "train",
        "model": "m",
        "corpus": "crp_x",
        "dev": {"fraction": 0.1},
        "features": {
            "templates": [["word[-1]", "word[0]"], {"edge": True}],
            "columns": {"s": {"kind": "match", "pattern": "[a-z]+", "of": "word"}},
        },
        "trainer": {"kind": "sgd-l1", "l1": 0.5, "passes": 3, "schedule": {"kind": "exponential"}},
        "seed": 1,
        "promote": "champion",
    },
    {"kind": "evaluate", "models": ["a:1", "b@champion"], "corpus": "crp_x"},
    {"kind": "tag", "model": "a", "corpus": "crp_x", "format": "conll"},
    {"kind": "rank", "model": "a:1", "corpus": "crp_x", "by": "margin", "top": 5, "diverse": True},
    {
        "kind": "tune",
        "model": "m",
        "corpus": "crp_x",
        "dev": {"fraction": 0.5},
        "trainer": {"kind": "lbfgs", "l2": {"search": [0.1, 1.0]}},
    },
]
PREVIEWS: list[dict[str, Any]] = [
    {"sentence": ["Ada", "ran"], "features": {"preset": "ner"}},
    {"sentence": [["Ada", "NNP"]], "features": {"template": "U00:%x[0,0]\nB\n"}, "columns": ["word", "pos"]},
]
TAG_REQUESTS: list[dict[str, Any]] = [
    {"model": "ner", "sentences": [["Ada", "ran"], [["Ada", "NNP"]]]},
    {"model": "ner:2", "sentences": [[{"w=a": 1.5}]], "probabilities": True, "best": 3},
    {"model": "ner", "text": "Ada ran.", "tokenizer": "words"},
]


def as_json(bodies: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(each).encode() for each in bodies]


def zipped(members: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for name, text in members.items():
            # A fixed date, so that the seeds are the same in every run.
            out.writestr(zipfile.ZipInfo(name), text)
    return file.getvalue()


def brat() -> list[bytes]:
    return [zipped({"a.txt": "Ada in London\n", "a.ann": "T1\tPER 0 3\tAda\nT2\tLOC 7 13\tLondon\n"})]


def compressed() -> list[bytes]:
    """Each corpus plain, and one in each compression."""
    plain = [text for texts in CORPORA.values() for text in texts]
    text = plain[0]
    packed = gzip.compress(text, mtime=0)
    streams = [
        packed,
        packed + packed,
        zstandard.compress(text),
        lzma.compress(text),
        zipped({"a.conll": text.decode()}),
    ]
    return [*plain, *streams, *brat()]


def models() -> list[bytes]:
    """Small models of our own format."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        found = []
        for model in (rich_model(), words_model(), trees_model()):
            save(model, path)
            found.append(path.read_bytes())
            path.unlink()
        return found


def unsealed_models() -> list[bytes]:
    """The same without checksums: length of the header, header, arrays."""
    found = []
    for data in models():
        header, payload = taken_apart(data)
        text = json.dumps(header).encode()
        found.append(len(text).to_bytes(4, "little") + text + bytes(payload))
    return found


def foreign_models() -> dict[str, list[bytes]]:
    """Small models of other programs."""
    return {
        "crfpp": [_strings("crf++").crfpp().encode()],
        "wapiti": [_strings("wapiti").wapiti()],
        "crfsuite": [_crfsuite()],
    }


def _strings(syntax: str) -> StringCrf:
    chosen = random.Random(1)
    lines = {
        "crf++": ["U00:%x[-1,0]/%x[0,1]", "U01:%x[0,0]", "B"],
        "wapiti": ["u:%X[0,0]", 'u2:%t[0,0,"^\\u"]', "*"],
    }[syntax]
    crf = StringCrf(["B-é", "I", "O"], lines, {}, {}, syntax)
    rows = [["New", "X"], ["a/b", "Y"], ["0", "/"]]
    for at in range(len(rows)):
        for line in lines:
            for weights, kinds, count in ((crf.singles, "Uu*", 3), (crf.pairs, "Bb*", 9)):
                if line[0] in kinds:
                    weights[expanded(line, rows, at, syntax)] = [chosen.gauss(0, 1) for _ in range(count)]
    return crf


def _crfsuite() -> bytes:
    trainer = pycrfsuite.Trainer(algorithm="ap", params={"max_iterations": 2}, verbose=False)
    blocks = b"".join(generate("references", 4, 1)).decode().split("\n\n")
    for block in blocks:
        rows = [line.split() for line in block.splitlines()]
        if rows:
            trainer.append([{"w": row[0][:2]} for row in rows], [row[-1] for row in rows])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        trainer.train(str(path))
        return path.read_bytes()
