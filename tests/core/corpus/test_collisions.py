"""Strings made to collide: the hash is fixed, because models must serve everywhere, so anybody can make them."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from numpy.typing import NDArray

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.hashing import GOLDEN
from tagsmith.core.corpus import vocabulary
from tagsmith.core.corpus.formats import conll
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.formats.segmented import read_segmented
from tagsmith.core.corpus.intern import intern
from tagsmith.core.corpus.vocabulary import Vocabulary, hash_bytes

Words = NDArray[np.uint64]

_S32 = np.uint64(32)


def _inverse(odd: np.uint64) -> np.uint64:
    return np.uint64(pow(int(odd), -1, 1 << 64))


def colliding(low_bits: int, seed: int = 1) -> Iterator[str]:
    """Tokens of 16 letters and signs whose hashes are the same in all of `low_bits`.

    Every step of the hash can be undone. So the first eight bytes and the bits that are left to choose of the hash are
    drawn, and the second eight bytes follow; those that are no plain text are thrown away, all but one in 3,000.
    """
    rng = np.random.default_rng(seed)
    count = 1 << 18
    alphabet = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", np.uint8)
    mask = np.uint64((1 << low_bits) - 1)
    while True:
        first = rng.choice(alphabet, (count, 8)).view(np.uint64).ravel()
        target = (rng.integers(0, 1 << 64, count, np.uint64) & ~mask) | (np.uint64(0x2A) & mask)
        second = np.ascontiguousarray(_second_word(first, target)).view(np.uint8).reshape(-1, 8)
        plain = ((second > 32) & (second < 127)).all(axis=1)
        for head, tail in zip(first.view(np.uint8).reshape(-1, 8)[plain], second[plain], strict=True):
            yield (head.tobytes() + tail.tobytes()).decode()


def _second_word(first: Words, target: Words) -> Words:
    fold, finish, seed = vocabulary._FOLD, vocabulary._FINISH, GOLDEN
    h = target ^ (target >> _S32)
    h *= _inverse(finish)
    h ^= h >> _S32
    h *= _inverse(fold)  # the last, empty word
    h ^= h >> _S32
    h *= _inverse(fold)
    start = seed ^ np.uint64((16 * int(finish)) & 0xFFFFFFFFFFFFFFFF)
    before = (start ^ first) * fold
    before ^= before >> _S32
    return h ^ before


@pytest.fixture(scope="module")
def crafted() -> list[str]:
    """As many as walk 18 million steps, in 340 KB."""
    return list(dict.fromkeys(islice(colliding(64), 6_000)))


def test_crafted_tokens_do_have_the_same_hash(crafted: list[str]) -> None:
    hashes = {int(hash_bytes(np.frombuffer(token.encode(), np.uint8), 0, 16)) for token in crafted}
    assert len(crafted) > 5_900
    assert hashes == {0x2A}


def test_a_corpus_of_colliding_tokens_is_refused_with_its_place(crafted: list[str]) -> None:
    text = "".join(f"{token} X\n" for token in crafted).encode()
    with pytest.raises(Invalid) as caught:
        read_conll([text], max_line_bytes=100)
    assert caught.value.code == "hash_flood"
    (fault,) = caught.value.faults
    assert fault.reason.startswith("token ")
    assert ", column 0: one of very many values" in fault.reason


def test_a_vocabulary_of_colliding_strings_is_refused(crafted: list[str]) -> None:
    with pytest.raises(Invalid) as caught:
        Vocabulary.from_strings(crafted)
    assert caught.value.code == "hash_flood"


def test_colliding_tokens_among_millions_of_others_cost_no_more_than_a_few_steps_each(
    crafted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Enough ordinary tokens to pay for the walks of the crafted ones."""
    some = crafted[:1_000]
    others = [f"{number:016x}" for number in range(1_000)]
    lines = {
        name: "".join(f"{t} X\n" for t in tokens).encode()
        for name, tokens in (("bad", some), ("good", others))
    }
    steps = {}
    for name, block in lines.items():
        pools = []
        monkeypatch.setattr(
            conll, "intern", lambda *given, pools=pools: pools.append(intern(*given)) or pools[-1]
        )
        assert read_conll([block, b"a X\n" * 200_000], max_line_bytes=100).tokens == 201_000
        pool, _ = pools[-1]
        _, strings, steps[name] = pool.used
        assert strings == 2 * 201_000
    # Each of n colliding tokens passes those before it: n * n / 2 steps. That is little for so many strings.
    assert steps["good"] < 1_000
    assert 400_000 < steps["bad"] < 1_000_000


def test_tags_of_words_are_guarded_too(crafted: list[str]) -> None:
    usable = [token for token in crafted if "/" not in token]
    text = "  ".join(f"a/{token}" for token in usable).encode()
    with pytest.raises(Invalid) as caught:
        read_segmented([text], max_line_bytes=1 << 20, tags="use")
    assert caught.value.code == "hash_flood"


def test_ordinary_corpora_are_far_from_the_limit() -> None:
    words = [f"w{number}" for number in range(300_000)]
    assert len(Vocabulary.from_strings(words)) == 300_000
    numbers = [str(number * 1024) for number in range(100_000)]
    assert len(Vocabulary.from_strings(numbers)) == 100_000
