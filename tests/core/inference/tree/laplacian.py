"""Sums over all trees by determinants of the Laplacian, in integers: an exact twin for sentences too long to list.

Koo et al. 2007, "Structured prediction models via the matrix-tree theorem", sections 3.1 to 3.3. Column m of the matrix
belongs to modifier m. With a single root, its first row is replaced by the weights of the root arcs. The weight of an
arc is 2 to the power of an integer that is not negative.
"""

from fractions import Fraction
from math import log

import numpy as np

Weights = list[list[int]]


def log_z(powers: np.ndarray, single_root: bool) -> float:
    return log(_z(_weights(powers), single_root))


def marginals(powers: np.ndarray, single_root: bool) -> np.ndarray:
    """The part of Z that is lost when an arc is left out."""
    out, weights = np.zeros(powers.shape), _weights(powers)
    z = _z(weights, single_root)
    for h, row in enumerate(weights):
        for m in range(1, len(row)):
            if h != m:
                weight, row[m] = row[m], 0
                out[h, m] = float(1 - Fraction(_z(weights, single_root), z))
                row[m] = weight
    return out


def _weights(powers: np.ndarray) -> Weights:
    return [[1 << int(power) for power in row] for row in powers]


def _z(weights: Weights, single_root: bool) -> int:
    words = range(1, len(weights))
    matrix = [[-weights[h][m] for m in words] for h in words]
    for m in words:
        matrix[m - 1][m - 1] = sum(weights[h][m] for h in words if h != m)
        if single_root:
            matrix[0][m - 1] = weights[0][m]
        else:
            matrix[m - 1][m - 1] += weights[0][m]
    return _determinant(matrix)


def _determinant(matrix: list[list[int]]) -> int:
    """By Bareiss's elimination, whose divisions leave no remainder."""
    n, sign, before = len(matrix), 1, 1
    for k in range(n - 1):
        pivot = next((i for i in range(k, n) if matrix[i][k]), None)
        if pivot is None:
            return 0
        if pivot != k:
            matrix[k], matrix[pivot] = matrix[pivot], matrix[k]
            sign = -sign
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                product = matrix[i][j] * matrix[k][k] - matrix[i][k] * matrix[k][j]
                matrix[i][j] = product // before
        before = matrix[k][k]
    return sign * matrix[-1][-1]
