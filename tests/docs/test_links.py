"""Every relative link of the documents resolves, to a file and to a heading in it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
#: `[text](target)` and `![text](target)`; the target may be followed by a title.
LINK = re.compile(r"\]\(([^)\s]+)[^)]*\)")
FENCED = re.compile(r"^(```|~~~).*?^\1$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]+`")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


def prose(document: Path) -> str:
    """The text of a document without its code, in which brackets are not links."""
    return FENCED.sub("", document.read_text(encoding="utf-8"))


def anchors(text: str) -> Iterator[str]:
    """The anchors of the headings, as GitHub makes them: `## A heading, twice` is `a-heading-twice`."""
    seen: dict[str, int] = {}
    for heading in HEADING.findall(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        yield f"{anchor}-{count}" if count else anchor


def broken(document: Path) -> list[str]:
    """Return the broken links of a document."""
    found = []
    for link in LINK.findall(CODE.sub("", prose(document))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (anchor and anchor not in set(anchors(prose(target)))):
            found.append(link)
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_resolves(document: Path) -> None:
    assert broken(document) == []


def test_a_missing_file_and_a_missing_heading_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One `two`, three\n[a](#one-two-three) [b](#one) [c](page.md#one-two-three) [d](gone.md)\n"
    )
    assert broken(page) == ["#one", "gone.md"]


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    listed = {target.partition("#")[0] for target in LINK.findall(index)}
    pages = {path.name for path in ROOT.glob("docs/*.md")} - {"README.md"}
    assert pages <= listed
    assert {"trainers/README.md", "decisions/README.md"} <= listed


def test_the_list_of_decisions_is_complete() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    records = {path.name for path in ROOT.glob("docs/decisions/0*.md")}
    assert records == set(LINK.findall(index))
