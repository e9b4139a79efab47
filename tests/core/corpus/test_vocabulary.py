import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus import vocabulary
from tagsmith.core.corpus.vocabulary import Vocabulary, hash_bytes, pack, table_capacity

# Surrogates included: JSON can carry them.
STRINGS = st.text(st.characters(codec=None, categories=None), max_size=12) | st.sampled_from(
    ["", "\n", "a\nb", "\ud800", "ä", "日本語", "x" * 8, "x" * 9, "x" * 64]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(STRINGS, unique=True, max_size=60), st.lists(STRINGS, max_size=60))
def test_a_vocabulary_answers_as_a_dict_does(known: list[str], asked: list[str]) -> None:
    twin = {string: number for number, string in enumerate(known)}
    words = Vocabulary.from_strings(known)
    assert len(words) == len(twin)
    assert words.strings() == known
    assert [words[i] for i in range(len(words))] == known
    asked = asked + known
    assert words.lookup(*pack(asked)).tolist() == [twin.get(string, -1) for string in asked]
    assert [words.id_of(string) for string in asked[:5]] == [twin.get(string, -1) for string in asked[:5]]


@settings(max_examples=200, deadline=None)
@given(st.lists(STRINGS, max_size=30))
def test_packing_keeps_every_token_even_with_newlines_inside(tokens: list[str]) -> None:
    buffer, starts, stops = pack(tokens)
    data = buffer.tobytes()
    spans = zip(starts.tolist(), stops.tolist(), strict=True)
    assert [data[a:b].decode("utf-8", "surrogatepass") for a, b in spans] == tokens


def test_a_large_vocabulary_finds_all_its_words_and_nothing_else() -> None:
    known = [f"word{i * 7919 % 100_003}" for i in range(50_000)]
    words = Vocabulary.from_strings(known)
    assert words.lookup(*pack(known)).tolist() == list(range(50_000))
    assert (words.lookup(*pack([f"other{i}" for i in range(1000)])) == -1).all()


@pytest.mark.parametrize(
    ("entries", "slots"), [(0, 8), (1, 8), (4, 8), (5, 16), (8, 16), (9, 32), (1000, 2048)]
)
def test_the_table_is_a_power_of_two_at_most_half_full(entries: int, slots: int) -> None:
    assert table_capacity(entries) == slots
    assert Vocabulary.from_strings([str(i) for i in range(entries)]).table.size == slots


def test_the_hash_never_changes() -> None:
    # Model files hold tables built with it: another value here means that old files can no longer be read.
    hashes = {
        word: int(hash_bytes(np.frombuffer(word, np.uint8), 0, len(word)))
        for word in (b"", b"a", b"Rockwell", b"Rockwell International")
    }
    assert hashes == {
        b"": 0xD0EC125F469B244A,
        b"a": 0x171EB9DBCEEBAB0D,
        b"Rockwell": 0x6EB37CDDE64051FB,
        b"Rockwell International": 0xEC9426CD66894CF1,
    }


def slow_hash(data: bytes) -> int:
    """The hash in plain whole numbers."""
    mask = (1 << 64) - 1
    h = 0x9E3779B97F4A7C15 ^ (len(data) * 0xD6E8FEB86659FD93 & mask)
    whole = len(data) // 8 * 8
    for word in [data[i : i + 8] for i in range(0, whole, 8)] + [data[whole:]]:
        h = (h ^ int.from_bytes(word, "little")) * 0x9FB21C651E98DF25 & mask
        h ^= h >> 32
    h = h * 0xD6E8FEB86659FD93 & mask
    return h ^ (h >> 32)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40))
def test_the_hash_is_that_of_its_slow_twin(data: bytes) -> None:
    buffer = np.frombuffer(b"<" + data + b">", np.uint8)
    assert int(hash_bytes(buffer, 1, 1 + len(data))) == slow_hash(data)


def test_the_low_bits_of_the_hash_are_spread_evenly() -> None:
    buffer, starts, stops = pack([f"w{i}" for i in range(4096)])
    slots = [int(hash_bytes(buffer, a, b)) & 1023 for a, b in zip(starts, stops, strict=True)]
    counts = np.bincount(slots, minlength=1024)
    # Four a slot; the chi-square of 1,023 degrees lies under 1,200 but for one chance in ten thousand.
    assert float(((counts - 4.0) ** 2 / 4.0).sum()) < 1200


def test_mapped_and_own_arrays_use_the_same_compiled_kernels(tmp_path) -> None:
    words = Vocabulary.from_strings(["a", "b"])
    paths = []
    for name in ("text", "offsets", "table"):
        paths.append(tmp_path / f"{name}.npy")
        np.save(paths[-1], getattr(words, name))
    words.lookup(*pack(["a"]))
    before = [len(f.signatures) for f in (vocabulary._lookup, vocabulary._build_table, vocabulary._gather)]
    mapped = Vocabulary(*(np.load(path, mmap_mode="r") for path in paths))
    writable = tuple(array.copy() for array in pack(["b", "c", "a"]))
    assert mapped.lookup(*writable).tolist() == [1, -1, 0]
    Vocabulary(words.text.copy(), words.offsets.copy(), words.table.copy()).lookup(*pack(["a"]))
    after = [len(f.signatures) for f in (vocabulary._lookup, vocabulary._build_table, vocabulary._gather)]
    assert before == after == [1, 1, 1]


def test_a_string_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="string 2 occurs twice"):
        Vocabulary.from_strings(["a", "b", "a"])


@pytest.mark.parametrize("entry", [-1, 2])
def test_an_id_outside_is_an_index_error(entry: int) -> None:
    with pytest.raises(IndexError):
        Vocabulary.from_strings(["a", "b"])[entry]


def test_spans_outside_the_buffer_never_reach_a_kernel() -> None:
    words = Vocabulary.from_strings(["a"])
    buffer = np.frombuffer(b"abc", np.uint8)
    for starts, stops in (([-1], [1]), ([0], [4]), ([2], [1]), ([0, 1], [1])):
        with pytest.raises(ValueError, match=r"span|starts and stops"):
            words.lookup(buffer, np.array(starts), np.array(stops))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("offsets", [0, 2, 1]),
        ("offsets", [0, 1, 3]),
        ("offsets", [1, 1, 2]),
        ("offsets", []),
        ("table", [0, 1, -1]),
        ("table", [0, 1, -1, 2, -1, -1, -1, -1]),
        ("table", [0, 1]),
        ("table", [0, -2, 1, -1, -1, -1, -1, -1]),
        ("table", [-1] * 8),
        ("text", [97]),
    ],
)
def test_arrays_of_a_damaged_file_are_refused(part: str, value: list[int]) -> None:
    words = Vocabulary.from_strings(["a", "b"])
    arrays = {name: getattr(words, name) for name in ("text", "offsets", "table")}
    arrays[part] = np.array(value, arrays[part].dtype)
    with pytest.raises(Invalid) as caught:
        Vocabulary(**arrays)
    assert caught.value.code == "corrupt_vocabulary"
