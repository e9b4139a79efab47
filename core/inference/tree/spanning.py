"""The best tree of all trees, projective or not: Chu-Liu-Edmonds in O(n^2).

Each word takes its best head. If the chosen arcs contain a cycle C, it is contracted to one node, and an arc from h
outside into m in C gets the weight
    w(h, C) = max_{m in C} w(h, m) - w(chosen arc into m),
because it replaces the chosen arc into m (Chu and Liu 1965; Edmonds 1967). At the end, a cycle keeps its chosen arcs
except the one into the word that the arc into the cycle enters.

Order: grow a path. Take the best arc into the last node, and go to the node of its head. If the path already contains
it, contract the cycle; if it leads to the root, the path is done (Tarjan 1977; Camerini, Fratta and Maffioli 1979). A
node is a row with one weight per head. Heads are always words: only rows are merged. There are at most n - 1
contractions, the cycles have at most 2n nodes in total, and each costs one row: O(n^2).

Single root: subtract from all root arcs a constant that exceeds any difference of scores. The best tree then has as few
root arcs as possible, which is one, and among those trees the constant changes nothing (Stanojevic and Cohen 2021, "A
root of a problem"). A weight of a contracted graph contains this constant once if its head is the root and otherwise
never, because the root is in no cycle. So it is sufficient to compare: a root arc is chosen only if there is no other
arc, which is when the node contains all words. No large constant is added, so no digits are lost.

Ties: the best arc into a word or cycle is the one with the lowest head, then the one with the lowest modifier.
"""

from math import inf

from tagsmith.core.base.jit import inlined, kernel
from tagsmith.core.inference.tree.scratch import Contraction, Floats, Integers, TreeScratch

_NEW, _ON_PATH, _DONE, _REPLACED = 0, 1, 2, 3


@kernel
def spanning_tree(scores: Floats, single_root: bool, s: TreeScratch, heads: Integers) -> float:
    """Write the heads of the best tree to `heads`, -1 at the root; return its score."""
    c, n = s.contraction, scores.shape[0] - 1
    _start(scores, c)
    last = n
    for start in range(1, n + 1):
        node, length = c.top[start], 0
        while c.state[node] != _DONE:
            if c.state[node] == _NEW:
                c.state[node] = _ON_PATH
                c.path[length] = node
                length += 1
                _choose(c, node, n, single_root)
                node = c.top[c.head[node]]
            else:
                last += 1
                length = _contract(c, node, last, length, n)
                node = last
        for i in range(length):
            c.state[c.path[i]] = _DONE
    _expand(c, last, heads)
    total = 0.0
    for m in range(1, n + 1):
        total += scores[heads[m], m]
    return total


@inlined
def _start(scores: Floats, c: Contraction) -> None:
    """Make each word a node. The root is done."""
    n = scores.shape[0] - 1
    for m in range(1, n + 1):
        for h in range(n + 1):
            c.weights[m * (n + 1) + h] = scores[h, m]
            c.into[m * (n + 1) + h] = m
        c.weights[m * (n + 1) + m] = -inf
        c.top[m] = c.row[m] = m
    for node in range(2 * n + 1):
        c.state[node] = _NEW
        c.parent[node] = 0
    c.top[0] = 0
    c.state[0] = _DONE


@inlined
def _choose(c: Contraction, node: int, n: int, single_root: bool) -> None:
    """Choose the best arc into the node. Heads inside the node have weight -inf."""
    row = c.row[node] * (n + 1)
    head, best = 0, -inf
    for h in range(1 if single_root else 0, n + 1):
        if c.weights[row + h] > best:
            head, best = h, c.weights[row + h]
    c.head[node] = head
    c.modifier[node] = c.into[row + head]
    c.gain[node] = c.weights[row + head]


@inlined
def _contract(c: Contraction, entry: int, cycle: int, length: int, n: int) -> int:
    """Merge the end of the path, from `entry` on, into the node `cycle`. Return the length of what is left."""
    side = n + 1
    kept = c.row[entry] * side
    for h in range(side):
        c.weights[kept + h] -= c.gain[entry]
    while True:
        length -= 1
        member = c.path[length]
        c.parent[member] = cycle
        if member == entry:
            break
        row = c.row[member] * side
        for h in range(side):
            weight = c.weights[row + h] - c.gain[member]
            here = c.weights[kept + h]
            if weight > here or (weight == here and c.into[row + h] < c.into[kept + h]):
                c.weights[kept + h] = weight
                c.into[kept + h] = c.into[row + h]
    c.row[cycle] = c.row[entry]
    for m in range(1, side):
        if c.parent[c.top[m]] == cycle:
            c.top[m] = cycle
            c.weights[kept + m] = -inf
    return length


@inlined
def _expand(c: Contraction, last: int, heads: Integers) -> None:
    """Undo the contractions, the last first. The arc into a cycle replaces the choices of all nodes that it enters."""
    heads[0] = -1
    for node in range(last, 0, -1):
        if c.state[node] == _REPLACED:
            continue
        m = c.modifier[node]
        heads[m] = c.head[node]
        while m != node:
            c.state[m] = _REPLACED
            m = c.parent[m]
