"""The page that lists the templates of the preset `parsing-wide`."""

import re
from collections import Counter

from tagsmith.core.features.arc_presets import ARC_PRESETS
from tagsmith.core.features.templates.template import ARC_COLUMNS

COLUMNS = ("form", "lemma", "upos", "xpos")
#: What is joined, by kind.
KINDS = {
    "attachment": "nothing but direction and distance",
    "lex": "the word or lemma of one side, also with its part of speech",
    "context-lex": "the word or lemma before or after one side, also with both parts of speech",
    "pos": "parts of speech of one side",
    "bilexical": "words or lemmas of both sides, also with parts of speech",
    "lex-pos": "word or lemma of the head, parts of speech of the modifier and beside it",
    "pos-lex": "parts of speech of the head and beside it, word or lemma of the modifier",
    "pos-pos": "parts of speech of both sides",
    "context-pos": "parts of speech of both sides and beside them",
    "middle-pos": "the part of speech of a token between, also with words, lemmas or parts of speech of both sides",
    "shape": "the shape of one side or of both, also with words, lemmas or parts of speech",
}
TABLE = re.compile(r"^\| kind \|.*\n(?:\|.*\n)+", re.MULTILINE)


def arc_templates_page(page: str) -> str:
    """Return the page with an updated table of kinds and updated lists of joins."""
    entries, _ = ARC_PRESETS["parsing-wide"](COLUMNS)
    kinds = [entry["name"].partition(":")[0] for entry in entries]
    counts = Counter(kinds)
    rows = [f"| [`{kind}`](#{kind}) | {what} | {counts.pop(kind)} |\n" for kind, what in KINDS.items()]
    assert not counts
    table = "| kind | what is joined | templates |\n|---|---|---|\n" + "".join(rows)
    begin = page.partition("\n## ")[0].rstrip() + "\n"
    sections = []
    for kind in KINDS:
        joins = [entry["join"] for entry, of in zip(entries, kinds, strict=True) if of == kind]
        alone = [" ".join(join) for join in joins if not set(join) & set(ARC_COLUMNS)]
        lines = "\n".join(line or "(nothing)" for line in alone)
        sections.append(f"\n## {kind}\n\n```text\n{lines}\n```\n")
    return TABLE.sub(lambda _: table, begin, count=1) + "".join(sections)
