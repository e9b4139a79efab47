"""Files that are not corpora: other encodings, documents, images and tables. Each is refused with what it is."""

import csv
import re

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus.formats.recognition import Head

#: The first bytes of files that are not text. No corpus begins with any of them.
_MAGIC = {
    b"%PDF-": "a PDF file",
    b"\x89PNG\r\n\x1a\n": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "a Word or Excel file",
    b"{\\rtf": "an RTF file",
    b"PAR1\x15": "a Parquet file",
    b"ARROW1\0": "an Arrow file",
    b"SQLite format 3\0": "an SQLite database",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"\x80\x04\x95": "a Python pickle",
}
#: Files of zip archives that show what the archive is.
_PACKED = {
    "word/": "a Word file",
    "xl/": "an Excel file",
    "ppt/": "a PowerPoint file",
    "content.xml": "an OpenDocument file",
}
#: First bytes of texts in other encodings, longer ones first.
_MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
#: Bytes in which zeros are counted. Half of them are zero if Latin text is in UTF-16, and none if it is in UTF-8.
_COUNTED = 1000
_FEW = 0.05

#: A JSON array of objects, or of arrays of strings or objects; and an object that goes on in the next line. A bracket
#: in column text is followed by a tag.
_ARRAY = re.compile(r'\s*\[\s*(\{\s*["}]|\[\s*["{\[])')
_OPEN_OBJECT = re.compile(r'\s*\{\s*\n\s*"')
_LABEL_STUDIO = re.compile(r'"(annotations|completions|predictions)"\s*:\s*\[')
_HEADER_CELL = re.compile(r"[^\W\d][\w .#-]{0,40}")


def refuse_binary(head: bytes) -> None:
    """Raise Invalid if the first bytes are those of a file that is not UTF-8 text."""
    for magic, what in _MAGIC.items():
        if head.startswith(magic):
            raise _foreign(f"This is {what}, not text.")
    encoding = _encoding(head)
    if encoding is not None:
        raise _foreign(f"This is {encoding}. Convert it: iconv -f {encoding} -t UTF-8 FILE")
    if head[:_COUNTED].count(0) > _FEW * len(head[:_COUNTED]) and len(head) >= _COUNTED:
        raise _foreign("This is a binary file, not text.")


def refuse_archive(names: list[str]) -> None:
    """Raise Invalid if the files of a zip archive are those of a document."""
    for beginning, what in _PACKED.items():
        if any(name.startswith(beginning) for name in names):
            raise _foreign(f"This is {what}, not text.")


def refuse_other_text(head: Head) -> None:
    """Raise Invalid if a text is JSON or a table in a form that no format reads."""
    text = "\n".join(head.lines)
    if _LABEL_STUDIO.search(text) and (head.json_fields or _ARRAY.match(text)):
        raise _foreign("This is an export of Label Studio. Export it as CONLL2003.")
    if _ARRAY.match(text):
        raise _foreign("This is one JSON array. Write one JSON object per line: jq -c '.[]' FILE")
    if _OPEN_OBJECT.match(text):
        raise _foreign("This is a JSON object of several lines. Write one JSON object per line.")
    if head.json_fields:
        raise _foreign(
            "These are JSON objects without known fields. Give each `tokens` and `tags`, or `text` and `spans`."
        )
    header = _header(head.filled)
    if header:
        raise _foreign(
            f"This is a table with the header {', '.join(header)}. Write one token per line, its columns separated by "
            "tabs and the label last, and an empty line after each sentence."
        )


def _encoding(head: bytes) -> str | None:
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return encoding
    counted = head[:_COUNTED]
    zeros = counted[::2].count(0), counted[1::2].count(0)
    if sum(zeros) * 4 < len(counted) or min(zeros) > _FEW * len(counted):
        return None
    return ("UTF-16LE" if zeros[1] else "UTF-16BE") if len(counted) > 1 else None


def _header(lines: list[str]) -> list[str]:
    """Return the names in the first line of a table separated by commas or semicolons; none if it is not one."""
    widths = {len(line.split()) for line in lines}
    if len(widths) == 1 and 1 not in widths:
        return []  # column text
    for delimiter in ",;":
        try:
            rows = list(csv.reader(lines, delimiter=delimiter))
        except csv.Error:
            continue
        header = rows[0] if rows else []
        same = len(rows) > 1 and len(header) > 1 and all(len(row) == len(header) for row in rows)
        if same and all(_HEADER_CELL.fullmatch(cell) for cell in header):
            return header
    return []


def _foreign(reason: str) -> Invalid:
    return Invalid("The file is not a corpus.", [Fault(reason, line=1)], code="not_a_corpus")
