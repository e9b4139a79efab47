"""Sums over all trees by determinants of the Laplacian, to hundreds of digits: a twin for sentences too long to list.

Koo et al. 2007, "Structured prediction models via the matrix-tree theorem", sections 3.1 to 3.3. Column m of the matrix
belongs to modifier m. With a single root, its first row is replaced by the weights of the root arcs.
"""

from decimal import Decimal, localcontext

import numpy as np

#: More digits than any two trees of the tests differ by.
DIGITS = 4000


def log_z(scores: np.ndarray, single_root: bool) -> float:
    with localcontext(prec=DIGITS):
        return float(_determinant(_matrix(_weights(scores), single_root)).ln())


def marginals(scores: np.ndarray, single_root: bool) -> np.ndarray:
    """The part of Z that is lost when an arc is forbidden."""
    out = np.zeros_like(scores)
    with localcontext(prec=DIGITS):
        weights = _weights(scores)
        z = _determinant(_matrix(weights, single_root))
        for (h, m), weight in list(weights.items()):
            weights[h, m] = Decimal(0)
            out[h, m] = float(1 - _determinant(_matrix(weights, single_root)) / z)
            weights[h, m] = weight
    return out


def _weights(scores: np.ndarray) -> dict[tuple[int, int], Decimal]:
    size = len(scores)
    return {(h, m): Decimal(scores[h, m]).exp() for h in range(size) for m in range(1, size) if h != m}


def _matrix(weights: dict[tuple[int, int], Decimal], single_root: bool) -> list[list[Decimal]]:
    n = max(m for _, m in weights)
    words = range(1, n + 1)
    matrix = [[-weights[h, m] if h != m else Decimal(0) for m in words] for h in words]
    for m in words:
        matrix[m - 1][m - 1] = sum((weights[h, m] for h in words if h != m), Decimal(0))
        if single_root:
            matrix[0][m - 1] = weights[0, m]
        else:
            matrix[m - 1][m - 1] += weights[0, m]
    return matrix


def _determinant(matrix: list[list[Decimal]]) -> Decimal:
    """By Gaussian elimination with pivots."""
    n, product = len(matrix), Decimal(1)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(matrix[i][k]))
        if matrix[pivot][k] == 0:
            return Decimal(0)
        if pivot != k:
            matrix[k], matrix[pivot] = matrix[pivot], matrix[k]
            product = -product
        product *= matrix[k][k]
        for i in range(k + 1, n):
            factor = matrix[i][k] / matrix[k][k]
            for j in range(k, n):
                matrix[i][j] -= factor * matrix[k][j]
    return product
