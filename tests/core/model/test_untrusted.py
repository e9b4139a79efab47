"""A model file of any content is refused, or is a model that tags and can be shown."""

import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tagsmith.core.model import untrusted
from tagsmith.core.model.file import CorruptModel, save
from tagsmith.core.model.model import SparseModel
from tagsmith.core.model.parser import parse
from tagsmith.core.model.parsing.explanation import explain_arcs
from tagsmith.core.model.tagger import Tagger
from tests.core.inference.tree.enumeration import is_tree
from tests.core.model.forging import put_together, rich_model, taken_apart, trees_model, words_model

#: Columns beyond those that a model needs do no harm.
SENTENCES = [
    [["New", "NNP"], ["York", "NNP"], ["said", "VBD"], ["", "."]],
    [["上", "海"], ["海", "x"], ["上", "x"], ["海", "x"], ["市", "x"]],
    [["é" * 40, "\x00"]],
]
#: What a number of a file may be changed to: the edges of what kernels follow, and far beyond.
NUMBERS = [-(2**31), -65, -2, -1, 0, 1, 2, 63, 64, 65, 255, 2**15, 2**31 - 1]
VALUES = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from([None, True, 1.5, 1e999, "", "0", "U", "word", "start", "\ud800", [], {}, 10**400]),
)


def _files(folder: Path, models: list[SparseModel]) -> list[bytes]:
    out = []
    for i, model in enumerate(models):
        save(model, folder / str(i))
        out.append((folder / str(i)).read_bytes())
    return out


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    return _files(tmp_path_factory.mktemp("models"), [rich_model(), words_model(), trees_model()])


@pytest.fixture(scope="module")
def use(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], bool]:
    """Open a file and do with the model all that the service does; whether it was taken."""
    path = tmp_path_factory.mktemp("opened") / "model"

    def run(data: bytes) -> bool:
        path.unlink(missing_ok=True)  # the last one is still mapped
        path.write_bytes(data)
        try:
            model = untrusted.opened(path)
        except CorruptModel:
            return False
        tagger = Tagger(model)
        tagger.tag_probe()
        sentences = [[row[: max(1, model.features.columns)] for row in s] for s in SENTENCES]
        if tagger.is_parser:
            _parse(tagger, sentences)
        else:
            tagged = tagger.tag(sentences)
            assert [len(tags) for tags in tagged] == [4, 5, 1]
            assert {tag for tags in tagged for tag in tags} <= set(model.labels)
        names = [model.attribute_name(i) for i in range(model.attributes.size)]
        if model.edges is not None:
            names += [model.edge_attribute_name(i) for i in range(model.edges.attributes.size)]
        "".join([*names, *model.labels]).encode()
        return True

    return run


def _parse(tagger: Tagger, sentences: list[list[list[str]]]) -> None:
    """Parse and explain."""
    coded = tagger.code(sentences)
    parsed = parse(tagger, coded, probabilities=True)
    for begin, end in pairwise(coded.offsets.tolist()):
        assert is_tree((-1, *parsed.heads[begin:end].tolist()))
    assert np.isfinite(parsed.arc_probabilities).all()
    assert {tagger.model.labels[i] for i in parsed.relations.tolist()} <= set(tagger.model.labels)
    assert len(list(explain_arcs(tagger, coded, parsed, [(0, 0), (1, 4)]))) == 2


def _leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a header: what holds it, and its key there."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from _leaves(value[key])


def test_files_put_together_again_are_taken(files: list[bytes], use: Callable[[bytes], bool]) -> None:
    assert [use(put_together(*taken_apart(data))) for data in files] == [True, True, True]


# A test of many small files: what it shares between examples it never changes.
_MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@_MANY
@given(st.data())
def test_a_header_of_any_content_does_no_harm(
    files: list[bytes], use: Callable[[bytes], bool], data: st.DataObject
) -> None:
    header, payload = taken_apart(data.draw(st.sampled_from(files)))
    del header["sha256"]
    for _ in range(data.draw(st.integers(1, 3))):
        places = list(_leaves(header))
        holder, key = places[data.draw(st.integers(0, len(places) - 1))]
        holder[key] = data.draw(VALUES)
    use(put_together(header, bytes(payload)))


@_MANY
@given(seed=st.integers(0, 2**32))
def test_arrays_of_any_content_do_no_harm(
    files: list[bytes], use: Callable[[bytes], bool], seed: int
) -> None:
    chosen = random.Random(seed)
    header, payload = taken_apart(chosen.choice(files))
    places = [place for _, place in sorted(header["arrays"].items()) if 0 not in place["shape"]]
    for _ in range(chosen.randint(1, 3)):
        place = chosen.choice(places)
        kind = np.dtype(place["dtype"])
        at = place["at"] + kind.itemsize * chosen.randrange(int(np.prod(place["shape"])))
        number = int.from_bytes(payload[at : at + kind.itemsize], "little")
        number = number + 1 if chosen.random() < 0.5 else chosen.choice(NUMBERS)
        payload[at : at + kind.itemsize] = (number % 256**kind.itemsize).to_bytes(kind.itemsize, "little")
    use(put_together(header, bytes(payload)))


@_MANY
@given(st.data())
def test_bytes_of_any_content_do_no_harm(
    files: list[bytes], use: Callable[[bytes], bool], data: st.DataObject
) -> None:
    whole = bytearray(data.draw(st.sampled_from(files)))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    use(bytes(whole[: data.draw(st.one_of(st.just(len(whole)), st.integers(0, len(whole))))]))


@pytest.mark.parametrize(
    "slot",
    [
        [65, 0, "token", "value", None, False],
        [-(10**9), 0, "token", "value", None, False],
        [0, -1, "token", "value", None, False],
        [0, 0, "end", "value", None, False],
        [64, 0, "end", "value", None, False],
        [0, 0, "middle", "value", None, False],
        ["0", 0, "token", "value", None, False],
    ],
)
def test_a_template_that_looks_where_there_is_nothing_is_refused(
    files: list[bytes], use: Callable[[bytes], bool], slot: list[Any]
) -> None:
    header, payload = taken_apart(files[0])
    header["features"]["templates"][0][2][0] = slot
    assert not use(put_together(header, bytes(payload)))


def test_text_that_json_cannot_say_is_refused(files: list[bytes], use: Callable[[bytes], bool]) -> None:
    header, payload = taken_apart(files[0])
    header["labels"][0] = "\ud800"
    assert not use(put_together(header, bytes(payload)))
    header, payload = taken_apart(files[0])
    payload[header["arrays"]["vocabulary.0.text"]["at"]] = 0xFF
    assert not use(put_together(header, bytes(payload)))


def test_weights_beyond_measure_are_refused(files: list[bytes], use: Callable[[bytes], bool]) -> None:
    header, payload = taken_apart(files[0])
    at = header["arrays"]["attributes.weights"]["at"]
    payload[at : at + 4] = np.float32(1e30).tobytes()
    assert not use(put_together(header, bytes(payload)))


@pytest.mark.parametrize(
    ("change", "value"),
    [
        (("trees",), None),
        (("trees", "projective"), 1),
        (("trees", "single_root"), "no"),
        (("labels", 0), "nsubj"),
        (("labels", 0), "head"),
        (("features", "structure"), "chain"),
        (("features", "templates", 1, 2, 0, 2), "token"),
        (("features", "templates", 3, 2, 0, 0), 1),
        (("features", "templates", 4, 2, 0, 1), "length"),
    ],
)
def test_a_parser_whose_header_does_not_fit_is_refused(
    files: list[bytes], use: Callable[[bytes], bool], change: tuple[Any, ...], value: Any
) -> None:
    header, payload = taken_apart(files[2])
    holder: Any = header
    for key in change[:-1]:
        holder = holder[key]
    holder[change[-1]] = value
    assert not use(put_together(header, bytes(payload)))


@pytest.mark.parametrize(
    ("anchor", "value"),
    [("direction", 2), ("direction", -1), ("distance", 8), ("between", -2), ("between", 100), ("head", 100)],
)
def test_a_parser_with_a_value_without_a_name_is_refused(
    files: list[bytes], use: Callable[[bytes], bool], anchor: str, value: int
) -> None:
    model = trees_model()
    places = [
        slot.anchor if slot.anchor != "arc" else slot.column
        for t in model.features.unigrams
        for slot in t.slots
    ]
    starts = np.cumsum([0, *(len(t.slots) for t in model.features.unigrams)])
    place = places.index(anchor)
    template = int(np.searchsorted(starts, place, side="right")) - 1
    attribute = int(np.flatnonzero(model.attributes.templates == template)[0])
    at = int(model.attributes.value_starts[attribute]) + place - int(starts[template])
    header, payload = taken_apart(files[2])
    at = header["arrays"]["attributes.values"]["at"] + 4 * at
    payload[at : at + 4] = value.to_bytes(4, "little", signed=True)
    assert not use(put_together(header, bytes(payload)))


def test_a_parser_with_transitions_is_refused(files: list[bytes], use: Callable[[bytes], bool]) -> None:
    header, payload = taken_apart(files[2])
    at = header["arrays"]["transitions"]["at"]
    payload[at : at + 4] = np.float32(1).tobytes()
    assert not use(put_together(header, bytes(payload)))
