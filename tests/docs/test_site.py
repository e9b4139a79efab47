"""The navigation of the site has every page, and no entry without a page."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Pages that the site takes from the top of the repository; see docs/site/hooks.py.
TOP = {"overview.md", "contributing.md", "changelog.md", "security.md"}


def entries() -> Iterator[str]:
    """Give the pages that the navigation names. `folder/*` stands for every page of a folder."""
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    for entry in re.findall(r"^ +- .*?: +([\w./*-]+)$", navigation, re.MULTILINE):
        if entry.endswith("/*"):
            yield from (
                str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs" / entry[:-2]).glob("*.md")
            )
        else:
            yield entry


def test_every_page_is_in_the_navigation_once() -> None:
    found = sorted(entries())
    pages = [str(path.relative_to(ROOT / "docs")) for path in ROOT.glob("docs/**/*.md")]
    assert found == sorted([*pages, *TOP])


@pytest.mark.parametrize("name", sorted(TOP))
def test_pages_from_the_top_are_those_of_the_hooks(name: str) -> None:
    hooks = Path(ROOT / "docs" / "site" / "hooks.py").read_text(encoding="utf-8")
    assert f'"{name}"' in hooks
