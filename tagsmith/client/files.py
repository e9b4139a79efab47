"""Files of users: the name of a corpus, feature templates, and downloads."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO

#: Of compressed files. The page has the same rule, in components/upload.js.
_COMPRESSION = re.compile(r"(.)\.(gz|zst|xz|zip)$", re.IGNORECASE)
_SUFFIX = re.compile(r"(.)\.[^.]+$")

#: What CRF++ does not have: `*` for both kinds, `%t`, `%m`, `%X`, and places counted from the ends of the sentence.
_WAPITI = re.compile(r"[ub*]|.*(%[tmTMX]\[|%x\[@)", re.ASCII)


def corpus_name(path: Path) -> str:
    """Return the name of a corpus that is uploaded from a file.

    >>> corpus_name(Path("data/ner.conll.gz"))
    'ner'
    """
    return _SUFFIX.sub(r"\1", _COMPRESSION.sub(r"\1", path.name))


def read_templates(path: Path) -> dict[str, str]:
    """Return the fields of a feature spec for a template file of CRF++ or Wapiti."""
    return templates_of(path.read_text(encoding="utf-8-sig"))


def templates_of(text: str) -> dict[str, str]:
    """Return the fields of a feature spec for the text of a template file. The syntax is recognised."""
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    return {"templates": text, "syntax": "wapiti" if any(map(_WAPITI.match, lines)) else "crf++"}


@contextmanager
def part_file(to: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """A file with a name to write to, which becomes `to` at the end of the block, and vanishes if the block fails.

    Links are followed. Pipes and devices are written to at once.
    """
    if Path(to).exists() and not Path(to).is_file():
        with Path(to).open("wb") as file:
            yield file
        return
    target = Path(to).resolve()
    part = tempfile.NamedTemporaryFile(prefix=f".{target.name}.", dir=target.parent, delete=False)  # noqa: SIM115
    try:
        with part as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        Path(part.name).chmod(0o666 & ~mask)  # as `open` would have made it
        Path(part.name).replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(part.name).unlink()
        raise
