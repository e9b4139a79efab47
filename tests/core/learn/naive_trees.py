"""The slow, obvious twin of learning from dependency trees: all trees are enumerated, features counted in full."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conllu import read_conllu
from tagsmith.core.inference.tree.rules import TreeRules
from tagsmith.core.learn.problem.problem import Problem
from tests.core.inference.tree import enumeration as every
from tests.core.inference.tree.enumeration import Heads

Array = np.ndarray


def corpus_of(
    seed: int, sentences: int = 8, longest: int = 4, *, relations: bool = True, crossing: bool = True
) -> Corpus:
    """Sentences of 1 to `longest` words with random trees that have one root."""
    rng, lines = np.random.default_rng(seed), []
    for _ in range(sentences):
        n = int(rng.integers(1, longest + 1))
        heads = rng.choice(every.trees(n, True, not crossing))
        for m in range(1, n + 1):
            relation = rng.choice(["subj", "obj", "mod"]) if relations else "dep"
            word, tag = f"w{rng.integers(4)}", rng.choice(["N", "V", "D"])
            lines.append(f"{m}\t{word}\t_\t{tag}\t_\t_\t{heads[m]}\t{relation}\t_\t_\n")
        lines.append("\n")
    text = "".join(lines).encode()
    return read_conllu([text], max_line_bytes=1000, columns=("form", "upos"), label="tree")


@dataclass(frozen=True)
class Sentence:
    """The attributes of each arc, by (head, modifier), and the gold tree."""

    arcs: dict[tuple[int, int], list[int]]
    heads: Heads
    relations: tuple[int, ...]  # the label of each word, from 1 on; 0 if there are no relations
    rules: TreeRules

    @property
    def words(self) -> int:
        return len(self.heads) - 1

    @cached_property
    def trees(self) -> Array:
        return every.trees(self.words, self.rules.single_root, self.rules.projective)

    def scores(self, w: Array) -> Array:
        """The score of each arc, [head, modifier]."""
        out = np.zeros((self.words + 1, self.words + 1))
        for (h, m), rows in self.arcs.items():
            out[h, m] = w[rows, 0].sum()
        return out

    def relation_scores(self, w: Array, m: int) -> Array:
        """The score of each relation of the gold arc into a word."""
        return w[self.arcs[self.heads[m], m], 1:].sum(axis=0)

    def loss(self, w: Array) -> float:
        """-log p(gold tree) - sum of log p(gold relation)."""
        scores = self.scores(w)
        loss = every.log_z(scores, self.trees) - every.score(scores, self.heads)
        for m in range(1, self.words + 1):
            if self.relations[m]:
                each = self.relation_scores(w, m)
                loss += float(np.log(np.exp(each).sum()) - each[self.relations[m] - 1])
        return loss

    def phi(self, heads: Heads, relations: tuple[int, ...], shape: tuple[int, int]) -> Array:
        """The features of a tree, and of relations at the gold arcs."""
        out = np.zeros(shape)
        for m in range(1, self.words + 1):
            np.add.at(out, (self.arcs[heads[m], m], 0), 1)
            if relations[m]:
                np.add.at(out, (self.arcs[self.heads[m], m], relations[m]), 1)
        return out

    def worst(self, w: Array, cost: float) -> tuple[Heads, tuple[int, ...], float]:
        """The tree and the relations of gold arcs that violate the margin most, and by how much they do."""
        scores = self.scores(w) + cost
        for m in range(1, self.words + 1):
            scores[self.heads[m], m] -= cost
        totals = every.totals(scores, self.trees)
        best = tuple(self.trees[int(np.argmax(totals))].tolist())
        loss, relations = float(totals.max()) - every.score(scores, self.heads), [0]
        for m in range(1, self.words + 1):
            gold = self.relations[m]
            if gold:
                each = self.relation_scores(w, m) + cost
                each[gold - 1] -= cost
                relations.append(int(np.argmax(each)) + 1)
                loss += float(each.max() - each[gold - 1])
            else:
                relations.append(0)
        return best, tuple(relations), loss


def sentences_of(problem: Problem) -> list[Sentence]:
    """The sentences of a problem, read from its arrays arc by arc: by modifier, then by head."""
    data, found = problem.data, []
    for first, last in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        n, arc = round(float(last - first) ** 0.5), int(first)
        arcs, heads, relations = {}, [-1] * (n + 1), [0] * (n + 1)
        for m in range(1, n + 1):
            for h in range(n + 1):
                if h != m:
                    arcs[h, m] = data.rows[data.starts[arc] : data.starts[arc + 1]].tolist()
                    if data.gold[arc] >= 0:
                        heads[m], relations[m] = h, int(data.gold[arc])
                    arc += 1
        found.append(Sentence(arcs, tuple(heads), tuple(relations), data.trees))
    return found
