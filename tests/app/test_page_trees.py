"""Parsers on the page: trees are drawn, explained and compared; jobs and models show UAS and relations."""

from pathlib import Path
from urllib.parse import quote

import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tests import parsers
from tests.app.browser import Tab
from tests.app.pages import Filled
from tests.app.test_page_views import LOOKS, look_at

pytestmark = pytest.mark.browser

TEXT = (
    "the offer appeared. Niesen could answer them before 26 answers and the order offered a small new offer."
)
ROWS = "the\tthe\tDET\t_\noffer\toffer\tNOUN\tNumber=Sing\nappeared\tappear\tVERB\t_"
#: More words than fit into a window.
LONG = " and ".join(["the order offered a small new offer before 26 answers"] * 4)
TREES = "[...document.querySelectorAll('.tree')]"
VIEWS = {
    "tree": "#/playground?model=words:1&text={text}",
    "tree-long": "#/playground?model=words:1&text={long}",
    "tree-columns": "#/playground?model=parser:1&text={rows}",
    "tree-two-versions": "#/playground?model=words:1&with=words:2&text={text}",
    "tree-corpus": "#/corpora/{corpus}",
    "tree-train": "#/train?corpus={corpus}",
    "tree-evaluate": "#/jobs/{evaluate}",
    "tree-compare": "#/jobs/{compare}",
    "tree-model": "#/models/words?version=1",
    "tree-difference": "#/models/words/diff/1/2",
}


@pytest.fixture(scope="module")
def filled(stack: BackgroundStack, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    folder = tmp_path_factory.mktemp("parsers")
    with Client(stack.url) as client:
        for name, data in (
            ("words", parsers.model_file("form")),
            ("words", parsers.model_file("form", passes=1)),
            ("parser", parsers.model_file()),
        ):
            (folder / name).write_bytes(data)
            client.import_model(name, folder / name)
        (folder / "trees.conllu").write_bytes(parsers.text(40, 2))
        options = {"columns": "form", "label": "tree"}
        corpus = client.upload(folder / "trees.conllu", "trees", "conllu", options)
        evaluated = client.evaluate(["words:1", "words:2"], corpus.id)
        trainers = [parsers.TRAINER, {**parsers.TRAINER, "passes": 2, "name": "short"}]
        spec = {"features": parsers.FEATURES["form"], "trainers": trainers, "dev": {"fraction": 0.2}}
        compared = client.compare({"corpus": corpus.id, **spec})
        jobs = {"evaluate": evaluated.wait().id, "compare": compared.wait().id}
    return Filled(stack.url, "words", corpus.id, jobs)


def address(filled: Filled, name: str) -> str:
    given = {"text": quote(TEXT), "long": quote(LONG), "rows": quote(ROWS), "corpus": filled.corpus}
    return f"{filled.url}/{VIEWS[name].format(**given, **filled.jobs)}"


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_with_trees_is_whole_and_open_to_all(
    tab: Tab, filled: Filled, pictures: Path, name: str
) -> None:
    for size, theme, axe in LOOKS:
        tab.resize(*size)
        tab.theme(theme)
        tab.open(address(filled, name))
        if name.startswith("tree") and "model=" in VIEWS[name]:
            tab.wait("document.querySelector('.tree svg')")
        look_at(tab, pictures / f"{name}-{size[0]}-{theme}.png", axe=axe)


def test_every_word_has_an_arc_from_its_head_and_a_row_in_the_table(tab: Tab, filled: Filled) -> None:
    tab.open(address(filled, "tree"))
    tab.wait("document.querySelectorAll('.tree').length === 2")  # the text has two sentences
    with Client(filled.url) as client:
        first, second = client.parse("words:1", text=TEXT)
    words = f"{TREES}.map((each) => [...each.querySelectorAll('text.word')].map((word) => word.textContent))"
    assert tab.evaluate(words) == [first.tokens, second.tokens]
    titles = tab.evaluate(f"[...{TREES}[0].querySelectorAll('.arc title')].map((each) => each.textContent)")
    beginnings = [
        f"{token}: {relation} of {first.tokens[head - 1]}, " if head else f"{token}: root, "
        for token, head, relation in zip(first.tokens, first.heads, first.relations or (), strict=True)
    ]
    assert sorted(each[: each.index(", ") + 2] for each in titles) == sorted(beginnings)
    tab.click(".tree summary")
    rows = tab.evaluate("[...document.querySelectorAll('.tree tbody')][0].innerText.split('\\n').length")
    assert rows >= len(first.tokens)
    assert "2 offer" in tab.text(".tree table")
    # Arcs are above the words, and no two labels of relations cover each other.
    boxes = tab.evaluate(
        f"[...{TREES}[1].querySelectorAll('.relation')].map((each) => each.getBoundingClientRect())"
        ".map((box) => [box.left, box.top, box.right, box.bottom])"
    )
    for i, one in enumerate(boxes):
        for other in boxes[i + 1 :]:
            apart = (
                one[2] <= other[0] + 1
                or other[2] <= one[0] + 1
                or one[3] <= other[1] + 1
                or other[3] <= one[1] + 1
            )
            assert apart, (one, other)


def test_a_word_and_an_arc_are_explained(tab: Tab, filled: Filled, pictures: Path) -> None:
    tab.open(address(filled, "tree"))
    tab.wait("document.querySelector('.tree svg')")
    tab.click("text[data-token='1']")
    explained = tab.text(".explanation")
    assert "The head of “offer” is “appeared”" in explained
    assert "The relation is nsubj" in explained
    assert tab.evaluate("document.querySelectorAll('.balance .bar').length") > 3
    tab.picture(pictures / "tree-explanation.png")
    # By keyboard: from the second word to the first.
    tab.evaluate("document.querySelector(\"text[data-token='1']\").focus()")
    tab.press("ArrowLeft")
    tab.press("Enter")
    tab.wait("document.querySelector('.explanation strong')?.innerText === 'the'")
    # A word of the second sentence counts from the beginning of the text.
    tab.evaluate(
        f"{TREES}[1].querySelector(\".arc[data-word='1']\")"
        ".dispatchEvent(new MouseEvent('click', { bubbles: true }))"
    )
    tab.wait("document.querySelector('.explanation strong')?.innerText === 'Niesen'")


def test_two_versions_differ_where_they_differ(tab: Tab, filled: Filled) -> None:
    tab.open(address(filled, "tree-two-versions"))
    tab.wait("document.querySelectorAll('.tagged').length === 2")
    with Client(filled.url) as client:
        one, other = (client.parse(f"words:{i}", text=TEXT) for i in (1, 2))
    expected = sum(
        (x.heads[i], (x.relations or ())[i]) != (y.heads[i], (y.relations or ())[i])
        for x, y in zip(one, other, strict=True)
        for i in range(len(x.heads))
    )
    marked = "[...document.querySelectorAll('.tagged')].map((each) => each.querySelectorAll('.arc.differs').length)"
    assert tab.evaluate(marked) == [expected, expected]


def test_a_job_and_a_model_show_uas_and_relations(tab: Tab, filled: Filled) -> None:
    tab.open(address(filled, "tree-evaluate"))
    assert "UAS" in tab.text("table")
    assert "nsubj" in tab.text(".view")
    assert "Confusion of relations" in tab.text(".view")
    tab.wait("document.querySelector('.sentences .tree .arc.differs')")
    tab.open(address(filled, "tree-model"))
    tab.wait("document.querySelector('.view')?.innerText.includes('Scores by relation on trees')")
    assert "Relations" in tab.text(".view")


def test_the_form_offers_the_presets_of_trees(tab: Tab, filled: Filled) -> None:
    tab.open(address(filled, "tree-train"))
    tab.wait("document.querySelector('#field-features')")
    offered = tab.evaluate("[...document.querySelector('#field-features').options].map((each) => each.value)")
    assert offered == ["parsing", "parsing-wide"]
