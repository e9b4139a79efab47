"""What a model tells beside its best labels, against brute force over every labelling of short sentences."""

from itertools import pairwise

import numpy as np
import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.jit import readonly
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.labels.codings import LabelCoding, breaks
from tagsmith.core.learn.problem.problem import Compiled
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.constraints import Constraints, allowed_by, infeasible
from tagsmith.core.model.decoding import Decoded, DecodingOptions, decode
from tagsmith.core.model.marginals import marginals
from tagsmith.core.model.model import SparseModel
from tagsmith.core.model.tagger import Coded, Tagger, score, score_edges
from tagsmith.core.pipeline.build import build_model
from tests import naive

ALL = DecodingOptions(nbest=20, probabilities=True, distributions=True, entropies=True)


@pytest.fixture(scope="module")
def tagger(model: SparseModel) -> Tagger:
    return Tagger(model)


@pytest.fixture(scope="module")
def coded(tagger: Tagger, corpus: Corpus) -> Coded:
    """Sentences short enough to try every labelling, an empty one among them."""
    whole = tagger.code_corpus(corpus)
    lengths = [1, 2, 3, 0, 3]
    offsets = np.cumsum([0, *lengths])
    codes = np.ascontiguousarray(whole.codes[:, : offsets[-1]])
    codes.flags.writeable = False
    return Coded(codes, offsets.astype(np.int64))


def _chains(tagger: Tagger, coded: Coded) -> list[tuple[np.ndarray, np.ndarray]]:
    """Emissions and transitions of each sentence that has tokens, read from the kernels of tagging."""
    labels, width, chains = len(tagger.labels), tagger.width, []
    for begin, end in pairwise(coded.offsets.tolist()):
        n = end - begin
        if n == 0:
            continue
        s = tagger.scratch(n)
        score(tagger.weights, coded, begin, end, s)
        emissions = s.scores.reshape(n, width)[:, :labels].astype(float)
        shared = tagger.model.transitions.astype(float)
        if tagger.model.edges is None:
            chains.append((emissions, shared))
            continue
        score_edges(tagger.weights, tagger.edge_weights, coded, begin, end, s)
        # Nothing is written for the first token, so that what stands there may be no number at all.
        matrices = np.zeros((n, labels, labels))
        matrices[1:] = s.matrices.reshape(n, labels, width)[1:, :, :labels]
        chains.append((emissions, matrices))
    return chains


def _sentences(coded: Coded) -> list[tuple[int, int, int]]:
    """(number, begin, end) of the sentences that have tokens."""
    return [(i, a, b) for i, (a, b) in enumerate(pairwise(coded.offsets.tolist())) if b > a]


def _check(found: Decoded, coded: Coded, chains: list, keep: naive.Keep = lambda _: True) -> None:
    for (i, begin, end), (emissions, transitions) in zip(_sentences(coded), chains, strict=True):
        expected = naive.nbest(emissions, transitions, 20, keep)
        count = int(found.path_counts[i])
        assert [tuple(found.paths[r, begin:end].tolist()) for r in range(count)] == [p for p, _ in expected]
        np.testing.assert_allclose(found.path_probabilities[i, :count], [p for _, p in expected], rtol=1e-9)
        assert found.path_probabilities[i, :count].sum() <= 1 + 1e-12
        assert found.probabilities[i] == pytest.approx(expected[0][1], rel=1e-9)
        assert np.exp(found.log_probabilities[i]) == pytest.approx(expected[0][1], rel=1e-9)
        scores = found.path_scores[i, :count]
        differences = [np.log(expected[0][1] / p) for _, p in expected]
        np.testing.assert_allclose(scores[0] - scores, differences, atol=1e-9)
        entropy = naive.entropy(emissions, transitions, keep)
        assert found.entropies[i] == pytest.approx(entropy, rel=1e-9, abs=1e-12)
        tokens, _ = naive.marginals(emissions, transitions, keep)
        np.testing.assert_allclose(found.distributions[begin:end], tokens, atol=1e-6)
        chosen = tokens[np.arange(end - begin), found.labels[begin:end]]
        np.testing.assert_allclose(found.marginals[begin:end], chosen, atol=1e-6)


def test_probabilities_and_the_list_equal_enumeration(tagger: Tagger, coded: Coded) -> None:
    found = decode(tagger, coded, ALL)
    assert found.feasible.all()
    _check(found, coded, _chains(tagger, coded))
    # Of no tokens there is one labelling.
    assert (found.path_counts[3], found.path_probabilities[3, 0], found.probabilities[3]) == (1, 1.0, 1.0)


def test_without_wishes_labels_are_those_of_tagging(tagger: Tagger, corpus: Corpus) -> None:
    coded = tagger.code_corpus(corpus)
    assert decode(tagger, coded, DecodingOptions()).labels.tolist() == tagger.decode(coded).tolist()
    several = decode(tagger, coded, DecodingOptions(nbest=3))
    assert several.labels.tolist() == several.paths[0].tolist()
    assert (np.diff(several.path_probabilities, axis=1) <= 0).all()
    assert (several.path_probabilities.sum(axis=1) <= 1 + 1e-12).all()


def test_marginals_are_a_distribution_at_every_token(tagger: Tagger, corpus: Corpus) -> None:
    coded = tagger.code_corpus(corpus)
    found = marginals(tagger, coded)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 60.0], ids=["by scaling", "by logarithms"])
def test_entropies_equal_enumeration_for_weights_of_any_size(
    compiled: Compiled, weights: Weights, coded: Coded, scale: float
) -> None:
    tagger = Tagger(build_model(compiled, Weights(weights.problem, weights.values * np.float32(scale))))
    found = decode(tagger, coded, DecodingOptions(entropies=True)).entropies
    assert found[3] == 0.0  # of no tokens there is one labelling
    for (i, _, _), chain in zip(_sentences(coded), _chains(tagger, coded), strict=True):
        assert found[i] == pytest.approx(naive.entropy(*chain), rel=1e-9, abs=1e-12)


def test_entropies_of_long_sentences_are_finite_and_no_higher_than_of_equal_labellings(
    tagger: Tagger, corpus: Corpus
) -> None:
    whole = tagger.code_corpus(corpus)
    one = whole._replace(offsets=readonly(np.array([0, corpus.tokens]), np.int64))
    found = decode(tagger, one, DecodingOptions(entropies=True))
    assert 0 < found.entropies[0] < corpus.tokens * np.log(len(tagger.labels))
    # The probability itself may be too small for a float64.
    assert -np.inf < found.log_probabilities[0] < 0


def test_posterior_labels_have_the_least_risk(tagger: Tagger, coded: Coded) -> None:
    found = decode(tagger, coded, DecodingOptions(posterior=True, probabilities=True))
    for (i, begin, end), chain in zip(_sentences(coded), _chains(tagger, coded), strict=True):
        path = naive.least_risk(*chain)
        assert tuple(found.labels[begin:end].tolist()) == path
        probability = np.exp(naive.score(*chain, path) - naive.log_z(*chain))
        assert found.probabilities[i] == pytest.approx(probability, rel=1e-9)


def test_constraints_hold_in_everything(tagger: Tagger, coded: Coded, compiled: Compiled) -> None:
    labels = compiled.problem.labels
    a, b, c = labels[:3]
    lengths = np.diff(coded.offsets).tolist()
    tags = [[None] * n for n in lengths]
    forbid = ((a, a), (b, c), (c, b))
    banned = {(labels.index(x), labels.index(y)) for x, y in forbid}

    def keep(path: tuple[int, ...]) -> bool:
        return not banned & set(pairwise(path))

    allowed = allowed_by(Constraints(tags=tags, forbid=forbid), labels, coded.offsets)
    chains = _chains(tagger, coded)
    _check(decode(tagger, coded, ALL, allowed), coded, chains, keep)
    found = decode(tagger, coded, DecodingOptions(posterior=True), allowed)
    for (_, begin, end), chain in zip(_sentences(coded), chains, strict=True):
        assert tuple(found.labels[begin:end].tolist()) == naive.least_risk(*chain, keep)


def test_fixed_labels_are_kept_and_the_rest_follows_them(tagger: Tagger, coded: Coded) -> None:
    labels = tagger.labels
    for wanted in range(len(labels)):
        tags = [None, None, [None, labels[wanted], None], None, None]
        allowed = allowed_by(Constraints(tags=tags), labels, coded.offsets)
        begin = int(coded.offsets[2])
        emissions, transitions = _chains(tagger, coded)[2]
        expected = naive.nbest(emissions, transitions, 20, lambda path: path[1] == wanted)  # noqa: B023
        found = decode(tagger, coded, ALL, allowed)
        count = int(found.path_counts[2])
        assert tuple(found.labels[begin : begin + 3].tolist()) == expected[0][0]
        np.testing.assert_allclose(found.path_probabilities[2, :count], [p for _, p in expected], rtol=1e-9)
        assert found.distributions[begin + 1, wanted] == pytest.approx(1.0)


def test_sentences_without_a_labelling_that_is_allowed_are_told(tagger: Tagger, coded: Coded) -> None:
    labels = tagger.labels
    every = [(x, y) for x in labels for y in labels]
    allowed = allowed_by(Constraints(forbid=every), labels, coded.offsets)
    found = decode(tagger, coded, ALL, allowed)
    assert found.feasible.tolist() == [True, False, False, True, False]
    problem = infeasible(np.flatnonzero(~found.feasible))
    assert problem.code == "no_sequence_allowed"
    assert [fault.pointer for fault in problem.faults] == ["/sentences/1", "/sentences/2", "/sentences/4"]


@pytest.mark.parametrize(
    ("names", "coding", "first", "last", "pairs"),
    [
        (["O", "B-X", "I-X", "I-Y"], "iob2", "I-X I-Y", "", "O>I-X O>I-Y B-X>I-Y I-X>I-Y I-Y>I-X"),
        (["O", "B-X", "I-X"], "iob1", "B-X", "", "O>B-X"),
        (["O", "B", "M", "E", "S"], "bmes", "M E", "B M", "O>M O>E B>O B>B B>S M>O M>B M>S E>M E>E S>M S>E"),
        (["O", "U-X", "B-X", "L-X"], "bilou", "L-X", "B-X", "O>L-X U-X>L-X B-X>O B-X>U-X B-X>B-X L-X>L-X"),
    ],
)
def test_what_breaks_each_coding(
    names: list[str], coding: LabelCoding, first: str, last: str, pairs: str
) -> None:
    found = breaks(names, coding)
    assert found is not None
    assert [name for name, wrong in zip(names, found.first, strict=True) if wrong] == first.split()
    assert [name for name, wrong in zip(names, found.last, strict=True) if wrong] == last.split()
    assert {f"{names[i]}>{names[j]}" for i, j in np.argwhere(found.pairs)} == set(pairs.split())


@pytest.mark.parametrize(
    ("constraints", "code", "pointer"),
    [
        (Constraints(forbid=[("O", "nobody")]), "unknown_label", "/constraints/forbid/0/1"),
        (Constraints(tags=[["nobody"], ["O", None]]), "unknown_label", "/constraints/tags/0/0"),
        (Constraints(tags=[["O"]]), "constraints_do_not_fit", "/constraints/tags"),
        (Constraints(tags=[None, ["O"]]), "constraints_do_not_fit", "/constraints/tags/1"),
        (Constraints(valid="bilou"), "unknown_label_coding", "/constraints/valid"),
    ],
)
def test_constraints_that_do_not_fit_are_pointed_at(
    constraints: Constraints, code: str, pointer: str
) -> None:
    with pytest.raises(Invalid) as caught:
        allowed_by(constraints, ["O", "B-X", "E-X"], np.array([0, 1, 3]))
    assert caught.value.code == code
    assert caught.value.faults[0].pointer == pointer
