"""Hooks of the documentation site: pages from outside docs/, patterns in the navigation, links to source files."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
#: Pages of the site that are files at the top of the repository.
TOP = {
    "README.md": "overview.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
#: A link to a file outside docs/, from a page at any depth.
OUTSIDE = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+)([A-Za-z][^)#\s]*)(#[^)\s]*)?\)")
#: A link from a page at the top of the repository into docs/.
INSIDE = re.compile(r"\]\(docs/([^)\s]*)\)")


def on_config(config: Any) -> Any:
    """Expand `folder/*` in the navigation: the README first, then all pages by name."""
    config["nav"] = [_expanded(entry) for entry in config["nav"]]
    return config


def _expanded(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    ((title, value),) = entry.items()
    if isinstance(value, list):
        return {title: [_expanded(each) for each in value]}
    if value.endswith("/*"):
        folder = ROOT / "docs" / value[:-2]
        pages = sorted(folder.glob("*.md"), key=lambda page: (page.name != "README.md", page.name))
        return {title: [str(page.relative_to(ROOT / "docs")) for page in pages]}
    return entry


def on_files(files: Files, config: Any) -> Files:
    """Add the pages at the top of the repository."""
    for source, target in TOP.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        text = INSIDE.sub(r"](\1)", text)
        for name, page in TOP.items():
            text = text.replace(f"]({name}", f"]({page}")
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Point links to files outside docs/ to their page, or show them as plain text."""
    depth = page.file.src_uri.count("/")

    def replaced(link: re.Match[str]) -> str:
        text, ups, path, anchor = link[1], link[2].count("../"), link[3], link[4] or ""
        if ups != depth + 1:
            return link[0]
        return f"[{text}]({'../' * depth}{TOP[path]}{anchor})" if path in TOP else text

    return OUTSIDE.sub(replaced, markdown)
