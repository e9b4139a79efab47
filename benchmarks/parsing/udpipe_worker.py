"""Trains and runs a parser of UDPipe 1. `udpipe` starts it with the interpreter that has `ufal.udpipe`.

Each line of the standard input is a request in JSON, each line of the standard output its answer. This file imports
nothing of the project: that interpreter need not have it.
"""

import json
import resource
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ufal.udpipe as udpipe  # type: ignore[import-not-found]


def sentences_of(text: str) -> Any:
    """Read CoNLL-U."""
    reader, error, found = (
        udpipe.InputFormat.newConlluInputFormat(),
        udpipe.ProcessingError(),
        udpipe.Sentences(),
    )
    reader.setText(text)
    sentence = udpipe.Sentence()
    while reader.nextSentence(sentence, error):
        found.append(sentence)
        sentence = udpipe.Sentence()
    if error.occurred():
        raise ValueError(error.message)
    return found


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


class Worker:
    """The methods are the requests."""

    def __init__(self) -> None:
        self._model: Any = None
        self._text = ""
        self._sentences: Any = None

    def train(self, text: str, model: str, options: str) -> dict[str, Any]:
        """Train on gold tags, without a tokenizer and a tagger, and write the model."""
        sentences, error = sentences_of(Path(text).read_text(encoding="utf-8")), udpipe.ProcessingError()
        began = time.perf_counter(), time.process_time()
        trained = udpipe.Trainer.train(
            "morphodita_parsito", sentences, udpipe.Sentences(), "none", "none", options, error
        )
        if error.occurred():
            raise ValueError(error.message)
        Path(model).write_bytes(trained)
        return {
            "seconds": round(time.perf_counter() - began[0], 1),
            "processor_seconds": round(time.process_time() - began[1], 1),
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
            "size_bytes": len(trained),
            "version": version("ufal.udpipe"),
        }

    def open(self, model: str, text: str) -> dict[str, Any]:
        """Load a model, and read a text to parse."""
        self._model = udpipe.Model.load(model)
        self._text = Path(text).read_text(encoding="utf-8")
        self._sentences = sentences_of(self._text)
        return {"sentences": len(self._sentences)}

    def parse(self) -> dict[str, Any]:
        """Parse the text. Return the seconds and processor seconds of reading it and of parsing its sentences."""
        moments = [_now()]
        sentences = sentences_of(self._text)
        moments.append(_now())
        for sentence in sentences:
            error = udpipe.ProcessingError()
            if not self._model.parse(sentence, udpipe.Model.DEFAULT, error):
                raise ValueError(error.message)
        moments.append(_now())
        self._sentences = sentences
        reading, parsing = (
            [b - a for a, b in zip(*each, strict=True)] for each in (moments[:2], moments[1:])
        )
        return {"reading": reading, "parsing": parsing}

    def trees(self) -> dict[str, Any]:
        """Return the heads and relations of all words that were parsed."""
        words = [word for sentence in self._sentences for word in list(sentence.words)[1:]]
        return {"heads": [word.head for word in words], "relations": [word.deprel for word in words]}


def main() -> None:
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(getattr(worker, request.pop("do"))(**request)), flush=True)


if __name__ == "__main__":
    main()
