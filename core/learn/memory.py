"""How much memory a training run will need, known before it starts.

Counted are the arrays whose size grows with the corpus: matrices of a float32 row of labels an attribute, vectors of a
float64 an existing parameter, and rows of labels a token. What the process and the compiled corpus hold already comes
on top. `docs/trainers` states the same sums in words.
"""

from dataclasses import dataclass

import numpy as np

from core.features.settled import Features
from core.learn.adf import AdfSpec, MadfSpec
from core.learn.asgd import AsgdSpec
from core.learn.dca import DcaSpec
from core.learn.descent import DescentSpec
from core.learn.instantiated import GROWTH
from core.learn.lbfgs import REVIEW, LbfgsSpec, QuasiNewtonSpec
from core.learn.online import OnlineSpec
from core.learn.pairs import seen_marks
from core.learn.perceptron import PerceptronSpec
from core.learn.problem import Problem
from core.learn.prox_grad import ProxGradSpec
from core.learn.schedule import CALIBRATION_SEQUENCES
from core.learn.sgd import SgdSpec
from core.learn.sparseptron import SparseptronSpec
from core.learn.trainer import TrainerSpec
from core.learn.two_stage import TwoStageSpec
from core.specs import Learning, TrainSpec

#: Vectors of quasi-Newton besides its memory: the point, its gradient and the units, in the state and at work (6), gold
#: counts, the steepest descent and the direction (3), a trial point and its gradient (2).
WORKING_VECTORS = 11
#: Of these, what only a step works with.
_WORKING_VECTORS_GONE = 7
#: Below this tolerance the last digits are sought, in float64, with matrices of their own (see `lbfgs`).
DOUBLE_TOLERANCE = 1e-7
#: A cell of the sample, and its number while it is being picked, twice.
_SAMPLED_CELL_BYTES = 4 + 2 * 8


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the sums are made of."""

    rows: int
    width: int
    parameters: int
    cells: int
    tokens: int
    sentences: int
    longest: int
    chain: int  # bytes a token of what a chain is worked on with
    marginals: int  # bytes a token of its marginals and those of the transitions into it

    @property
    def matrix(self) -> int:
        """Bytes of a row of labels an attribute, in float32."""
        return 4 * self.rows * self.width

    @property
    def vector(self) -> int:
        """Bytes of a float64 a parameter."""
        return 8 * self.parameters


def sizes_of(problem: Problem) -> Sizes:
    """Count what a problem has."""
    labels = len(problem.labels)
    if problem.seen_pairs:
        parameters = int(np.count_nonzero(seen_marks(problem)))
    else:
        parameters = (problem.rows - (0 if problem.edges else labels)) * labels
    return Sizes(
        rows=problem.rows,
        width=problem.width,
        parameters=parameters,
        # A cell is a number for an attribute at a token, whichever kind.
        cells=len(problem.data.rows) + len(problem.data.edge_rows),
        tokens=problem.tokens,
        sentences=problem.sentences,
        longest=problem.longest,
        chain=4 * problem.width * (4 + (labels if problem.rich else 0)),
        marginals=4 * problem.width * (1 + (labels if problem.rich else 0)),
    )


def least_bytes(features: Features, tokens: int) -> int:
    """Give what any run over so many tokens takes at the least, known before a corpus is even read.

    That is a number for each template at each token, and the columns they are made from.
    """
    templates = len(features.templates) + len(features.over_several)
    return 4 * tokens * (templates + features.columns)


def peak_bytes(spec: Learning, problem: Problem) -> int:
    """Estimate the most that training takes at one time, on top of the compiled corpus."""
    sizes = sizes_of(problem)
    # The weights are read out after each pass; the best of them are kept when patience needs them.
    read = sizes.matrix * (2 if spec.stop.keeps_best else 1)
    start = sizes.matrix if isinstance(spec, TrainSpec) and spec.init else 0
    state = _state(spec.trainer, sizes, spec.threads)
    # Rates are found before the first pass, and what that took is given back.
    found = _calibration(spec.trainer, sizes) if isinstance(spec.trainer, DescentSpec | AdfSpec) else 0
    learning = start + state + max(0, read - found)
    return max(learning, read + _held_at_end(spec.trainer, sizes) + _model(spec.trainer, sizes))


def _state(trainer: TrainerSpec, sizes: Sizes, threads: int) -> int:
    if isinstance(trainer, TwoStageSpec):
        # What the first stage found its rate with is gone when the second begins.
        first, gone = _state(trainer.first, sizes, threads), _calibration(trainer.first, sizes)
        return first + max(0, _state(trainer.second, sizes, threads) - gone)
    if isinstance(trainer, SparseptronSpec):
        return _state(trainer.selection(), sizes, threads) + _state(trainer.refit, sizes, threads)
    if isinstance(trainer, QuasiNewtonSpec):
        return _quasi_newton(trainer, sizes, threads)
    if isinstance(trainer, ProxGradSpec):
        return _prox_grad(trainer, sizes)
    assert isinstance(trainer, DescentSpec | AdfSpec | OnlineSpec)
    return _per_sample(trainer, sizes)


def _per_sample(trainer: DescentSpec | AdfSpec | OnlineSpec, sizes: Sizes) -> int:
    chains = sizes.chain * sizes.longest * min(trainer.batch, sizes.sentences)
    if isinstance(trainer, OnlineSpec):
        # Averages or variances beside the weights; where each row's sum of the present update stands.
        second = 0 if isinstance(trainer, PerceptronSpec) else sizes.matrix
        return sizes.matrix + second + 4 * sizes.rows + chains
    if isinstance(trainer, AdfSpec | MadfSpec):
        # MADF keeps a scale for every weight; both a rate and three counts a row, copied when weights are read.
        scale = sizes.matrix if isinstance(trainer, MadfSpec) else 0
        return 2 * sizes.matrix + scale + 2 * 4 * 8 * sizes.rows + chains + _calibration(trainer, sizes)
    searched = 8 * sizes.rows if getattr(trainer, "line_search", "none") == "heuristic" else 0
    averaged = sizes.matrix if isinstance(trainer, AsgdSpec) else 0
    state = sizes.matrix + averaged + 4 * sizes.rows
    return state + searched + chains + _calibration(trainer, sizes)


def _prox_grad(trainer: ProxGradSpec, sizes: Sizes) -> int:
    """At most: every feature instantiated. What is stored is copied to where there is more room, half as much again.

    Besides, of each row its template, where it is stored, and where its sum of the present update stands.
    """
    stored = sizes.matrix + 4 * sizes.rows
    chains = sizes.chain * sizes.longest
    state = stored + int(stored / GROWTH) + (2 + 4 + 4) * sizes.rows + chains
    if trainer.loss == "perceptron" or trainer.eta0 != "auto":
        return state
    # Trials go over a sample.
    share = min(1.0, CALIBRATION_SEQUENCES / max(1, sizes.sentences))
    return max(state, int(share * (state + _SAMPLED_CELL_BYTES * sizes.cells)))


def _calibration(trainer: DescentSpec | AdfSpec, sizes: Sizes) -> int:
    """Trials of first rates: a state of their own over a sample of the corpus, picked cell by cell."""
    if (trainer.c if isinstance(trainer, AdfSpec) else trainer.schedule.eta0) != "auto":
        return 0
    sampled = sizes.cells * min(1.0, CALIBRATION_SEQUENCES / max(1, sizes.sentences))
    averaged = sizes.matrix if isinstance(trainer, AsgdSpec) else 0
    return sizes.matrix + averaged + 4 * sizes.rows + int(_SAMPLED_CELL_BYTES * sampled)


def _quasi_newton(trainer: QuasiNewtonSpec, sizes: Sizes, threads: int) -> int:
    vectors = 2 * min(trainer.memory, trainer.passes) + WORKING_VECTORS
    marginals = sizes.marginals * sizes.tokens
    # Which labels the parameters belong to, and where attributes occur.
    layout = 4 * sizes.parameters + 4 * sizes.cells + 8 * 2 * sizes.rows
    chains = sizes.chain * sizes.longest * threads
    once = sizes.matrix + marginals + layout + chains
    # The parameters that count, once few do: their cells twice, and a number a cell while they are picked. The vectors
    # at work get shorter meanwhile, by more than the rows and the layout of the new set take.
    fewer = 0 if isinstance(trainer, LbfgsSpec) or trainer.passes <= REVIEW else (2 * 4 + 8) * sizes.cells
    double = once + sizes.matrix + marginals + sizes.vector if trainer.tolerance < DOUBLE_TOLERANCE else 0
    return vectors * sizes.vector + once + fewer + double


def _held_at_end(trainer: TrainerSpec, sizes: Sizes) -> int:
    """What a trainer still holds while the model is made: its state, without what a step works with."""
    if isinstance(trainer, AsgdSpec):
        return 2 * sizes.matrix + 4 * sizes.rows
    if isinstance(trainer, MadfSpec):
        return 2 * sizes.matrix + 4 * 8 * sizes.rows
    if isinstance(trainer, DescentSpec | AdfSpec):
        return sizes.matrix + 4 * sizes.rows
    if isinstance(trainer, OnlineSpec | SparseptronSpec):
        return _state(trainer, sizes, 1)
    if isinstance(trainer, ProxGradSpec):
        return sizes.matrix + (2 + 4 + 4 + 4) * sizes.rows
    return _state(trainer, sizes, 1) - _WORKING_VECTORS_GONE * sizes.vector


def _model(trainer: TrainerSpec, sizes: Sizes) -> int:
    """Making the sparse model: rows, and of each weight whether it is one, its label and itself. Under L1 few are."""
    if not isinstance(trainer, SgdSpec | AsgdSpec | LbfgsSpec | AdfSpec | MadfSpec | DcaSpec | ProxGradSpec):
        return 0
    return sizes.matrix + (1 + 2 + 4) * sizes.parameters
