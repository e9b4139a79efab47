"""Estimate the memory of a training run before it starts.

The estimate counts the arrays whose size grows with the corpus: float32 weight matrices, vectors of one float64 per
parameter, and rows of labels per token. It excludes the process itself and the compiled corpus. Every trainer estimates
its own state (`TrainerSpec.state_bytes`). `docs/trainers` describes the same sums in words.
"""

from tagsmith.core.features.resolved import Features
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.base import TrainerSpec
from tagsmith.core.learn.trainers.sizes import Sizes, sizes_of

#: Bytes of an arc without its attributes: where they begin, its label, and its score.
_ARC_BYTES = 8 + 4 + 4
#: One in this many templates has a feature of the training data at an arc: 3 to 6 on treebanks.
_FOUND_AT_ARCS = 6


def least_bytes(features: Features, tokens: int, sentences: int = 1) -> int:
    """Estimate the least memory of any run over `tokens` tokens, before the corpus is read.

    It counts one number per template and token, and the columns that templates read. Sentences of trees have one arc
    per pair of words, so the number of arcs is least if all sentences are equally long.
    """
    if features.structure == "tree":
        arcs = tokens * tokens // max(sentences, 1)
        return arcs * (_ARC_BYTES + 4 * len(features.templates) // _FOUND_AT_ARCS)
    templates = len(features.templates) + len(features.bag_templates)
    return 4 * tokens * (templates + features.columns)


def peak_bytes(
    trainer: TrainerSpec, problem: Problem, *, threads: int, keeps_best: bool, warm: bool = False
) -> int:
    """Estimate the peak memory of training, excluding the compiled corpus.

    `keeps_best`: the weights of the best pass are kept. `warm`: training starts from given weights.
    """
    sizes = sizes_of(problem)
    # The weights are copied after each pass.
    read = sizes.matrix * (2 if keeps_best else 1)
    start = sizes.matrix if warm else 0
    # Calibration ends before the first pass and frees its memory.
    freed = trainer.calibration_bytes(sizes)
    learning = start + trainer.state_bytes(sizes, threads) + max(0, read - freed)
    return max(learning, read + trainer.held_bytes(sizes) + _model_bytes(trainer, sizes))


def _model_bytes(trainer: TrainerSpec, sizes: Sizes) -> int:
    """Estimate the memory to build the model: rows; a flag, a label and a value per weight. Negligible if sparse."""
    return sizes.matrix + (1 + 2 + 4) * sizes.parameters if trainer.dense else 0
