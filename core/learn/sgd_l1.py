"""Stochastic gradient descent with an L1 penalty (Tsuruoka, Tsujii & Ananiadou 2009).

    w <- w + eta_k (d/dw) log p(y_j | x_j; w),   then the penalty, u_k = (l1 / N) sum of eta up to k

- `cumulative` (the default): a weight receives the difference between u_k and the penalty it has had so far. Section
  3.2's update is exactly `w = soft(g, u at the weight's last touch)` with g the plain sum of its gradient steps, so g
  and one number a row are all there is to store: a row is read as `soft(g, touched)`, and using it sets `touched` to
  u_k.
- `clipping`: each update shrinks every weight by eta_k l1 / N without crossing zero. Lazily: a row that was settled at
  u' owes u - u' when it is read next, so `touched` holds the u it was settled at.
- `naive`: subtract eta_k l1 / N sign(w) from all weights at each update. A dense sweep; kept for comparison.
"""

from collections.abc import Iterator
from math import isfinite
from time import perf_counter
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from core.inference import chain as ch
from core.inference import vector as v
from core.inference.chain import Chain, Edges
from core.jit import kernel
from core.learn.evaluation import Model, Weights, sequence_posterior
from core.learn.order import pass_order
from core.learn.problem import Problem, Sequences
from core.learn.rows import (
    Rows,
    add_to_row,
    census,
    load_edges,
    rows,
    settle,
    settle_row,
    subtract_gold,
    value_of,
)
from core.learn.schedule import CALIBRATION_SEQUENCES, Schedule, calibrate
from core.learn.trainer import SLICE_SECONDS, Diverged, Report, State, Trainer, TrainerSpec

CUMULATIVE, CLIPPING, NAIVE = 0, 1, 2
_MODES = {"cumulative": CUMULATIVE, "clipping": CLIPPING, "naive": NAIVE}


class SgdL1Spec(TrainerSpec):
    """`l1` is the weight of |w| in the objective; `batch` the sequences of one update."""

    kind: Literal["sgd-l1"] = "sgd-l1"
    l1: Annotated[float, Field(ge=0, le=1e6)] = 0.5
    penalty: Literal["cumulative", "clipping", "naive"] = "cumulative"
    schedule: Schedule = Schedule()
    batch: Annotated[int, Field(ge=1, le=100_000)] = 1


@kernel
def _sweep(weights: ch.Floats, penalty: float) -> None:
    """w -= penalty * sign(w), over everything."""
    kind = weights.dtype.type
    step, zero = kind(penalty), kind(0)
    for i in range(weights.shape[0]):
        w = weights[i]
        weights[i] = w - step if w > zero else w + step if w < zero else w


@kernel
def _add_steps(data: Sequences, sentence: int, at: int, after: float, r: Rows, c: Chain, width: int) -> None:
    """Add the steps in `beta` to the rows of a sentence and mark them touched at u = after."""
    mark = r.touched.dtype.type(after)
    for token in range(data.offsets[sentence], data.offsets[sentence + 1]):
        step = (at + token - data.offsets[sentence]) * width
        for k in range(data.starts[token], data.starts[token + 1]):
            row = np.int64(data.rows[k])
            r.touched[row] = mark
            add_to_row(r, row, value_of(data, k), c.beta, step, width)


@kernel
def _settle_rows(data: Sequences, sentence: int, before: float, r: Rows, width: int) -> None:
    """Pay what the rows of a sentence owe at u = before. A row met twice owes nothing the second time."""
    mark = r.touched.dtype.type(before)
    for token in range(data.offsets[sentence], data.offsets[sentence + 1]):
        for k in range(data.starts[token], data.starts[token + 1]):
            row = np.int64(data.rows[k])
            settle_row(r, row, mark - r.touched[row], width)
            r.touched[row] = mark


@kernel
def _add_edge_steps(attributes: int, labels: int, after: float, r: Rows, c: Chain, width: int) -> None:
    for y in range(labels):
        r.touched[attributes + y] = r.touched.dtype.type(after)
        add_to_row(r, attributes + y, 1.0, c.pairs, y * width, width)


@kernel
def _settle_edges(attributes: int, labels: int, before: float, r: Rows, width: int) -> None:
    mark = r.touched.dtype.type(before)
    for row in range(attributes, attributes + labels):
        settle_row(r, row, mark - r.touched[row], width)
        r.touched[row] = mark


@kernel
def _run(
    data: Sequences, order: NDArray[np.int64], rates: NDArray[np.float64], first: int, last: int, batch: int,
    shrink: float, mode: int, attributes: int, labels: int, width: int, edges: bool, r: Rows,
    total: NDArray[np.float64], e: Edges, c: Chain,
) -> float:  # fmt: skip
    """Updates `first` to `last` of a pass, in steps of `batch`; returns the loss met on the way. total[0] is u."""
    loss = 0.0
    denormals = v.flush_denormals()
    for b in range(first, last, batch):
        stop = min(b + batch, last)
        rate, before = rates[b], total[0]
        after = before + rate * shrink * (stop - b)
        base, sign = (0.0, 1.0) if mode == CUMULATIVE else (before, -1.0) if mode == CLIPPING else (0.0, 0.0)
        shift = load_edges(r, attributes, labels, base, sign, width, e)
        m = Model(r, base, sign, shift, labels, width)
        if edges:
            c.pairs[:] = 0
        at, paired = 0, False
        for i in range(b, stop):
            sentence = order[i]
            begin = data.offsets[sentence]
            n = data.offsets[sentence + 1] - begin
            if n == 0:
                continue
            loss += sequence_posterior(data, sentence, m, edges, e, c, at)
            paired |= edges and n > 1
            subtract_gold(c, at, data.gold, begin, n, rate, width)
            at += n
        mark = before if mode == CLIPPING else after
        if mode == NAIVE:
            _sweep(r.weights, after - before)
        elif mode == CLIPPING:
            for i in range(b, stop):
                _settle_rows(data, order[i], before, r, width)
        at = 0
        for i in range(b, stop):
            _add_steps(data, order[i], at, mark, r, c, width)
            at += data.offsets[order[i] + 1] - data.offsets[order[i]]
        if paired:
            if mode == CLIPPING:
                _settle_edges(attributes, labels, before, r, width)
            _step_edges(data, order, b, stop, rate, c.pairs, labels, width)
            _add_edge_steps(attributes, labels, mark, r, c, width)
        total[0] = after
    v.restore_denormals(denormals)
    return loss


@kernel
def _step_edges(
    data: Sequences, order: NDArray[np.int64], first: int, last: int, rate: float, pairs: ch.Floats, labels: int,
    width: int,
) -> None:  # fmt: skip
    """Turn expected transitions into ascent steps: rate * (gold counts - expected)."""
    minus = v.splat(pairs.dtype.type(-rate))
    for k in range(0, labels * width, v.LANES):
        v.store(pairs, k, v.multiply(v.load(pairs, k), minus))
    for i in range(first, last):
        for token in range(data.offsets[order[i]] + 1, data.offsets[order[i] + 1]):
            pairs[data.gold[token - 1] * width + data.gold[token]] += pairs.dtype.type(rate)


class SgdL1(Trainer):
    """See the module."""

    dtype: type = np.float32

    def __init__(self, spec: SgdL1Spec) -> None:
        self.spec = spec
        self.l1 = spec.l1
        self._mode = _MODES[spec.penalty]

    def start(self, problem: Problem) -> State:
        r = rows(problem.attributes, len(problem.labels), self.dtype)
        eta0 = 0.0 if self.spec.schedule.eta0 == "auto" else self.spec.schedule.eta0
        return {
            "weights": r.weights,
            "touched": r.touched,
            "penalty": np.zeros(1),
            "eta0": np.array([eta0]),
            "passes": np.zeros(1, np.int64),
        }

    def passes(self, problem: Problem, state: State, seed: int) -> Iterator[Report]:
        if state["eta0"][0] == 0.0:
            yield from self._calibrate(problem, state, seed)
        while True:
            loss = 0.0
            number = int(state["passes"][0]) + 1
            updates = np.arange(
                (number - 1) * problem.sentences, number * problem.sentences, dtype=np.float64
            )
            for fraction, part in self._one_pass(problem, state, seed, updates, problem.sentences):
                loss += part
                if not isfinite(loss):
                    raise Diverged(
                        f"The loss is no longer a finite number in pass {number} (eta0 {state['eta0'][0]:g}). "
                        'Give a smaller schedule.eta0, or leave it at "auto"'
                    )
                yield Report("train", number - 1, fraction)
            state["passes"][0] = number
            yield Report("train", number, 0.0, pass_done=True, loss=loss)

    def _one_pass(
        self, problem: Problem, state: State, seed: int, updates: NDArray[np.float64], sequences: int
    ) -> Iterator[tuple[float, float]]:
        """Yield (fraction done, loss of the slice). `updates` are numbers of updates in a run over N `sequences`."""
        labels, width, batch = len(problem.labels), problem.width, self.spec.batch
        e = ch.edges(labels, self.dtype)
        c = ch.chain(_room(problem, batch), labels, self.dtype)
        r = Rows(state["weights"], state["touched"])
        count = problem.sentences
        order = pass_order(count, seed, int(state["passes"][0]) + 1)
        rates = self.spec.schedule.rates(float(state["eta0"][0]), updates, sequences)
        first, step = 0, batch * max(1, 64 // batch)
        while first < count:
            last = min(first + step, count)
            began = perf_counter()
            loss = _run(
                problem.data, order, rates, first, last, batch, self.spec.l1 / sequences, self._mode,
                problem.attributes, labels, width, problem.edges, r, state["penalty"], e, c,
            )  # fmt: skip
            seconds = perf_counter() - began
            step = batch * max(1, min(int(step / batch * SLICE_SECONDS / max(seconds, 1e-4)), 1 << 20))
            first = last
            yield first / count, loss

    def _calibrate(self, problem: Problem, state: State, seed: int) -> Iterator[Report]:
        sample = problem.sample(CALIBRATION_SEQUENCES)
        best = (np.inf, 0.0)
        for trial, (eta0, objective) in enumerate(
            calibrate(lambda eta0: self._objective_after(sample, eta0, seed, problem.sentences)), start=1
        ):
            best = min(best, (objective, eta0))
            yield Report("calibrate", 0, 0.0, message=f"trial {trial}: eta0 {eta0:g} gives {objective:.6g}")
        if not isfinite(best[0]):
            raise Diverged("No learning rate kept the loss finite on a sample of the corpus")
        state["eta0"][0] = best[1]
        yield Report("calibrate", 0, 0.0, message=f"eta0 {best[1]:g}")

    def _objective_after(self, sample: Problem, eta0: float, seed: int, sequences: int) -> float:
        state = self.start(sample)
        state["eta0"][0] = eta0
        whole_run = np.linspace(0, self.spec.passes * sequences, sample.sentences)
        for _ in self._one_pass(sample, state, seed, whole_run, sequences):
            pass
        weights = self.weights(sample, state)
        _, norm1, _ = census(weights.values)
        return sum(weights.loss(sample)) + self.l1 * norm1 * sample.sentences / sequences

    def weights(self, problem: Problem, state: State) -> Weights:
        u = float(state["penalty"][0])
        base, sign = {CUMULATIVE: (0.0, 1.0), CLIPPING: (u, -1.0), NAIVE: (0.0, 0.0)}[self._mode]
        out = v.zeros(state["weights"].shape[0], self.dtype)
        r = Rows(state["weights"], state["touched"])
        settle(r, base, sign, len(problem.labels), problem.width, out)
        return Weights(problem, out)


def _room(problem: Problem, batch: int) -> int:
    """Tokens that the longest possible batch can hold."""
    if batch == 1:
        return problem.longest
    lengths = np.sort(np.diff(problem.data.offsets))[::-1]
    return int(lengths[:batch].sum())
