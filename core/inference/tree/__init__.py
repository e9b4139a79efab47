"""Kernels for one dependency tree whose score is the sum of its arcs: the best tree, log Z and marginals.

A sentence has n words, numbered from 1; 0 is the root. `scores[h, m]` is the score of the arc from head h to modifier
m, in a C-contiguous float64 matrix of n + 1 rows. Column 0 and the diagonal are not used. Scores must be finite; a very
low score (-1e30) forbids an arc. With `single_root`, exactly one word has head 0, otherwise at least one.
The caller owns the scratch and the output: `heads`, an int32 per word after -1 for the root, or marginals in the shape
of the scores, zero where there is no arc.

| trees      | best tree         | log Z              | log Z and marginals    |
|------------|-------------------|--------------------|------------------------|
| all        | `spanning_tree`   | `spanning_log_z`   | `spanning_marginals`   |
| projective | `projective_tree` | `projective_log_z` | `projective_marginals` |
"""
