"""`prox-grad`: gradient steps with periodic proximal steps that drop whole groups (Martins et al. 2011).

Minimises sum of losses + strength * sum over groups of d_m |w_m|, by Algorithm 1. Each sequence causes one
(sub)gradient step at the rate eta0 / sqrt(pass). After every `every` sequences, and at the end of a pass, the proximal
steps follow. With a budget instead of a strength, each proximal step shrinks so that `budget` groups remain. `proximal`
has the steps. `instantiated` has the weight storage for them.

With `template` and `coarse-to-fine` groups, a proximal step changes one number per template. The other kinds have
groups inside templates. Their step sweeps over the stored weights, which is little work once per 1,000 sequences. Under
`label`, `elastic-net` and `lasso` d_m is 1, so all readings of a budget (`rank`, `shrink`) are the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from tagsmith.core.base import simd as v
from tagsmith.core.learn.problem.groups import Templates
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.base import Diverged, Report, State, Trainer, TrainerSpec, in_slices
from tagsmith.core.learn.trainers.margin.margin import Margin, rule_of
from tagsmith.core.learn.trainers.order import pass_order
from tagsmith.core.learn.trainers.proximal import instantiated
from tagsmith.core.learn.trainers.proximal.instantiated import GROWTH, PEAK, WEIGHTS, ProximalPlan, store_of
from tagsmith.core.learn.trainers.proximal.proximal import (
    BudgetReading,
    Level,
    budget_factors,
    budget_threshold,
    levels_of,
    shrunk,
    shrunk_to,
    strength_factors,
)
from tagsmith.core.learn.trainers.sgd.descent import SAMPLED_CELL_BYTES
from tagsmith.core.learn.trainers.sgd.schedule import CALIBRATION_SEQUENCES, calibrate
from tagsmith.core.learn.trainers.sizes import Sizes
from tagsmith.core.learn.weights.pairs import mask_of
from tagsmith.core.learn.weights.scoring import Weights

#: A template scale below this is multiplied into the weights, long before float32 loses precision.
SMALLEST_SCALE = 1e-4
#: Default penalties: the group strength, the L1 inside templates, and the L2 of the elastic net.
DEFAULT_STRENGTH, DEFAULT_L1, DEFAULT_L2 = 1.0, 0.5, 1.0

_MARGINS = {"crf": Margin.ASCENT, "svm": Margin.PASSIVE, "perceptron": Margin.PERCEPTRON}

Strength = Annotated[float, Field(ge=0, le=1e6)]
#: The number of groups to keep.
Budget = Annotated[int, Field(ge=1, le=1_000_000_000)]
#: Bounded because the selection path is stored: templates times passes.
SelectionPasses = Annotated[int, Field(ge=1, le=1000)]


class GroupsSpec(TrainerSpec):
    """`groups` selects what is dropped together; `every` is the number of sequences between proximal steps.

    `rank` and `shrink` are the reading of a budget: whether d_m divides the norms that rank groups, and whether it
    multiplies the amount by which their norms shrink.
    """

    groups: Literal["template", "label", "sparse-group", "elastic-net", "coarse-to-fine", "lasso"] = (
        "template"
    )
    strength: Strength | None = None
    budget: Budget | None = None
    shrink: Literal["plain", "scaled"] = "plain"
    rank: Literal["norm", "scaled"] = "norm"
    l1: Strength | None = None
    l2: Strength | None = None
    every: Annotated[int, Field(ge=1, le=1_000_000)] = 1000

    @field_validator("budget")
    @classmethod
    def _one_of_two(cls, budget: int | None, info: ValidationInfo) -> int | None:
        if budget is not None and info.data.get("groups") == "lasso":
            raise ValueError('`budget` does not apply to groups "lasso". Set `strength` instead.')
        if budget is not None and info.data.get("strength") is not None:
            raise ValueError("Set `strength` or `budget`, not both.")
        return budget

    @field_validator("shrink", "rank")
    @classmethod
    def _applies_to_a_budget(cls, value: str, info: ValidationInfo) -> str:
        name = str(info.field_name)
        if value != cls.model_fields[name].default and not cls.has_budget(info.data):
            raise ValueError(f"`{name}` applies only to a `budget`. Remove it.")
        return value

    @field_validator("rank")
    @classmethod
    def _leaves_at_most_the_budget(cls, rank: str, info: ValidationInfo) -> str:
        if rank == "scaled" and info.data.get("shrink") == "plain":
            raise ValueError(
                '`rank` "scaled" with `shrink` "plain" would leave more groups than the budget. '
                'Set `shrink` to "scaled" too, or `rank` to "norm".'
            )
        return rank

    @classmethod
    def has_budget(cls, fields: Mapping[str, Any]) -> bool:
        """Whether a spec with these fields has a budget instead of a strength."""
        return fields.get("budget") is not None

    @field_validator("l1", "l2")
    @classmethod
    def _has_such_a_penalty(cls, value: float | None, info: ValidationInfo) -> float | None:
        groups = "sparse-group" if info.field_name == "l1" else "elastic-net"
        if value is not None and info.data.get("groups") != groups:
            raise ValueError(
                f'`{info.field_name}` applies only to groups "{groups}". Remove it or change `groups`.'
            )
        return value


class ProxGradSpec(GroupsSpec):
    """`strength` or `budget` controls how much is dropped."""

    # These groups use every kernel.
    example: ClassVar[dict[str, Any]] = {"kind": "prox-grad", "groups": "label", "passes": 1}
    dense: ClassVar[bool] = True

    kind: Literal["prox-grad"] = "prox-grad"
    loss: Literal["crf", "svm", "perceptron"] = "crf"
    eta0: Annotated[float, Field(gt=0, le=1e6)] | Literal["auto"] = "auto"
    passes: SelectionPasses = 10

    @property
    def calibrated(self) -> bool:
        return self.loss == "crf"

    def make(self, threads: int) -> "ProxGrad":
        del threads
        return ProxGrad(self)

    def state_bytes(self, sizes: Sizes, threads: int) -> int:
        """Estimate the peak: at most every feature is stored, and the store is copied when it grows.

        In addition, per row: its template, its slot in the store, and the slot of its sum in the current update.
        """
        del threads
        stored = sizes.matrix + 4 * sizes.rows
        state = stored + int(stored / GROWTH) + (2 + 4 + 4) * sizes.rows + sizes.chains(1)
        if self.loss == "perceptron" or self.eta0 != "auto":
            return state
        # Trials run on a sample.
        share = min(1.0, CALIBRATION_SEQUENCES / max(1, sizes.sentences))
        return max(state, int(share * (state + SAMPLED_CELL_BYTES * sizes.cells)))

    def held_bytes(self, sizes: Sizes) -> int:
        return sizes.matrix + (2 + 4 + 4 + 4) * sizes.rows


@dataclass(frozen=True, eq=False)
class GroupLayout:
    """The groups of a problem."""

    templates: Templates
    rows: NDArray[np.int16]  # (rows,) the template of each row
    sizes: NDArray[np.float64]  # (templates,) the number of possible features
    levels: tuple[Level, ...]
    mask: NDArray[np.uint8]

    def squares(self, weights: Weights) -> NDArray[np.float64]:
        """(templates,) |w|^2"""
        values = weights.values.reshape(len(self.rows), -1)
        return _sums(self.rows, np.einsum("ij,ij->i", values, values), len(self.sizes))


class ProxGrad(Trainer):
    """Gradient steps and proximal steps on a store of instantiated rows."""

    dtype: type = np.float32

    def __init__(self, spec: ProxGradSpec) -> None:
        self.spec = spec
        given = DEFAULT_STRENGTH if spec.strength is None else spec.strength
        self._strength = given if spec.budget is None else None
        self._reading = BudgetReading(spec.rank == "scaled", spec.shrink == "scaled")
        self._l1 = (spec.l1 if spec.l1 is not None else DEFAULT_L1) if spec.groups == "sparse-group" else 0.0
        self._l2 = (spec.l2 if spec.l2 is not None else DEFAULT_L2) if spec.groups == "elastic-net" else 0.0
        self._layout_of: GroupLayout | None = None

    def start(self, problem: Problem, init: Weights | None = None) -> State:
        layout = self.layout(problem)
        count = len(layout.templates.names)
        state = instantiated.start(problem, count, self.dtype)
        if init is not None:
            instantiated.fill(state, init.values, layout.rows, problem.width)
        # The rate only scales the weights of a perceptron, so any initial rate gives the same result.
        eta0 = 1.0 if self.spec.eta0 == "auto" and self.spec.loss == "perceptron" else self.spec.eta0
        return state | {
            "eta0": np.array([0.0 if eta0 == "auto" else eta0]),
            "passes": np.zeros(1, np.int64),
            "kept": np.zeros((0, count), np.uint8),
            "instantiated": np.zeros(0, np.int64),
        }

    def varies(self, name: str) -> bool:
        return name in ("owners", "values", "kept", "instantiated")

    def layout(self, problem: Problem) -> GroupLayout:
        """Return the groups of a problem; computed once."""
        templates = problem.templates
        assert templates is not None
        if self._layout_of is None or self._layout_of.templates is not templates:
            mask, rows = mask_of(problem), templates.of_rows(len(problem.labels))
            weights = np.full(problem.rows, float(len(problem.labels)))
            if len(mask):
                weights = np.bitwise_count(mask).reshape(problem.rows, -1).sum(axis=1, dtype=np.float64)
            if not problem.edges:
                weights[problem.attributes : problem.blocks] = 0
            sizes = _sums(rows, weights, len(templates.names))
            coarse = self.spec.groups == "coarse-to-fine"
            groups = templates.finer() if coarse else [[t] for t in range(len(templates.names))]
            self._layout_of = GroupLayout(templates, rows, sizes, levels_of(groups, sizes), mask)
        return self._layout_of

    def passes(self, problem: Problem, state: State, seed: int) -> Iterator[Report]:
        task = self.task(problem)
        if state["eta0"][0] == 0.0:
            yield from self._calibrate(problem, state, seed)
        while True:
            number, loss = int(state["passes"][0]) + 1, 0.0
            order = pass_order(problem.sentences, seed, number)
            rate = float(state["eta0"][0]) / sqrt(number)
            rates = np.full(problem.sentences, rate)
            state["counts"][PEAK] = state["counts"][WEIGHTS]
            for first in range(0, problem.sentences, self.spec.every):
                last = min(first + self.spec.every, problem.sentences)
                for done, part in self._steps(problem, state, task, order, rates, first, last):
                    loss += part
                    if not isfinite(loss):
                        raise Diverged(
                            f"The loss is no longer a finite number in pass {number} (eta0 {state['eta0'][0]:g}). "
                            'Set a smaller `eta0`, or "auto".'
                        )
                    yield Report("train", number - 1, done / problem.sentences)
                self.shrink(problem, state, task, rate * (last - first) / problem.sentences)
            self._record(state)
            state["passes"][0] = number
            kept = int(state["kept"][-1].sum())
            message = f"pass {number}: {kept} of {len(state['scales'])} templates"
            yield Report("train", number, 0.0, pass_done=True, loss=loss, message=message)

    def task(self, problem: Problem) -> ProximalPlan:
        """Create the plan for a problem."""
        costs: NDArray[Any] = np.ones(len(problem.labels) if self.spec.loss == "svm" else 0, self.dtype)
        rule = rule_of(_MARGINS[self.spec.loss], 0.0, costs)
        layout = self.layout(problem)
        return instantiated.task_of(problem, rule, layout.rows, layout.mask, self.dtype)

    def _steps(
        self,
        problem: Problem,
        state: State,
        task: ProximalPlan,
        order: NDArray[np.int64],
        rates: NDArray[np.float64],
        first: int,
        last: int,
    ) -> Iterator[tuple[int, float]]:
        """Take gradient steps on sequences `first` to `last` of a pass; yield (sequences done, loss of the slice)."""

        def run(begin: int, end: int) -> float:
            loss, at, end = 0.0, first + begin, first + end
            while True:
                at, needed, part = instantiated.run_steps(
                    problem.data, order, at, end, rates, store_of(state), task
                )
                loss += part
                if at == end:
                    return loss
                instantiated.make_room(state, needed, problem.width)

        for fraction, loss in in_slices(last - first, 1, run):
            yield first + round(fraction * (last - first)), loss

    def shrink(self, problem: Problem, state: State, task: ProximalPlan, share: float) -> None:
        """Apply the pending proximal steps: `share` of the penalty, or the shrinkage that the budget requires."""
        count = len(state["scales"])
        thresholds, factors, by_unit = np.zeros(count), np.ones(count), np.empty(0)
        if self.spec.groups == "label":
            by_unit = np.zeros(problem.attributes + problem.edge_attributes)
            instantiated.unit_squares(store_of(state), task, by_unit)
            ratios, budget = np.sqrt(by_unit), self.spec.budget
            by_unit = shrunk_to(ratios, budget) if budget else shrunk(ratios, self._threshold(share))
        elif self.spec.groups in ("elastic-net", "lasso"):
            stored = state["values"][: state["counts"][0] * problem.width]
            budget = self.spec.budget
            thresholds[:] = budget_threshold(np.abs(stored), budget) if budget else self._threshold(share)
            factors[:] = 1.0 / (1.0 + share * self._l2)
        else:
            if self._l1:
                thresholds[:] = share * self._l1 / state["scales"]
                instantiated.sweep(store_of(state), thresholds, factors, by_unit, task)
                thresholds[:] = 0.0
            factors = self._rescale(state, share)
            if (factors == 1.0).all():
                return
        instantiated.sweep(store_of(state), thresholds, factors, by_unit, task)
        instantiated.give_back(state, problem.width)

    def _threshold(self, share: float) -> float:
        return share * (self._strength or 0.0)

    def _rescale(self, state: State, share: float) -> NDArray[np.float64]:
        """Shrink templates by their scales. Return the remaining factors for the stored weights, 0 where dropped."""
        assert self._layout_of is not None
        scales = state["scales"]
        levels, budget = self._layout_of.levels, self.spec.budget
        # If all weights are back at zero, a small rounding error of either sign may remain.
        squares = scales * scales * np.maximum(state["squares"], 0.0)
        if budget is None:
            factors = strength_factors(levels, squares, self._threshold(share))
        else:
            factors = budget_factors(levels, squares, budget, self._reading)
        dropped = (factors == 0.0) & (state["squares"] > 0.0)
        scales *= np.where(factors > 0.0, factors, 1.0)
        small = scales < SMALLEST_SCALE
        left = np.where(dropped, 0.0, np.where(small, scales, 1.0))
        scales[dropped | small] = 1.0
        return left

    def _record(self, state: State) -> None:
        kept = (state["squares"] > 0.0).astype(np.uint8)
        state["kept"] = np.concatenate([state["kept"], kept[None]])
        state["instantiated"] = np.append(state["instantiated"], state["counts"][PEAK])

    def _calibrate(self, problem: Problem, state: State, seed: int) -> Iterator[Report]:
        """Find the rate that lowers the loss on a sample most. It ignores penalties, as they scale with the rate."""
        sample = problem.sample(CALIBRATION_SEQUENCES)
        task = self.task(sample)
        start = self.weights(problem, state) if state["counts"][WEIGHTS] else None
        order = pass_order(sample.sentences, seed, 1)
        squeezed = np.ceil(np.arange(1, sample.sentences + 1) * self.spec.passes / sample.sentences)
        best = (np.inf, 0.0)

        def loss_after(eta0: float) -> float:
            trial = self.start(sample, start)

            def loss_met(rates: NDArray[np.float64]) -> float:
                steps = self._steps(sample, trial, task, order, rates, 0, sample.sentences)
                return sum(part for _, part in steps)

            loss_met(eta0 / np.sqrt(squeezed))
            return loss_met(np.zeros(sample.sentences))

        for number, (eta0, loss) in enumerate(calibrate(loss_after), start=1):
            best = min(best, (loss, eta0))
            yield Report("calibrate", 0, 0.0, message=f"trial {number}: eta0 {eta0:g} gives {loss:.6g}")
        if not isfinite(best[0]):
            raise Diverged(
                "No learning rate kept the loss finite on a sample of the corpus. Set a small `eta0`."
            )
        state["eta0"][0] = best[1]
        yield Report("calibrate", 0, 0.0, message=f"eta0 {best[1]:g}")

    def weights(self, problem: Problem, state: State) -> Weights:
        values = v.zeros(problem.rows * problem.width, self.dtype)
        layout = self.layout(problem)
        instantiated.read_out(store_of(state), layout.rows, problem.layout, values)
        return Weights(problem, values)

    def penalty(self, weights: Weights, norm1: float, norm2: float) -> float:
        strength = self._strength or 0.0
        if self.spec.groups in ("elastic-net", "lasso"):
            return strength * norm1 + 0.5 * self._l2 * norm2
        if self.spec.groups == "label":
            rows = weights.attribute_rows, weights.edge_matrices
            return strength * sum(float(np.sqrt(np.einsum("ij,ij->i", each, each)).sum()) for each in rows)
        layout = self.layout(weights.problem)
        squares = layout.squares(weights)
        ratios = sum(float((level.weights**2 * level.ratios(squares)).sum()) for level in layout.levels)
        return strength * ratios + self._l1 * norm1

    def findings(self, weights: Weights, state: State) -> dict[str, Any]:
        layout = self.layout(weights.problem)
        return {"selection": selection(layout, weights, state["kept"], state["instantiated"])}


def _sums(templates: NDArray[np.int16], by_row: NDArray[Any], count: int) -> NDArray[np.float64]:
    """Sum per-row numbers by template."""
    return np.bincount(templates, by_row, minlength=count).astype(np.float64)


def selection(
    layout: GroupLayout, weights: Weights, kept: NDArray[np.uint8], instantiated_by_pass: NDArray[np.int64]
) -> dict[str, Any]:
    """Describe the selection: the templates in the model, their sizes, and the path of the selection over passes."""
    names = layout.templates.names
    norms = np.sqrt(layout.squares(weights))
    active = np.count_nonzero(weights.values.reshape(len(layout.rows), -1), axis=1)
    features = _sums(layout.rows, active, len(names))
    return {
        "templates": [
            {
                "name": name,
                "edge": layout.templates.edges[t],
                "norm": round(float(norms[t]), 6),
                "features": int(features[t]),
                "size": int(layout.sizes[t]),
                "kept": bool(features[t]),
            }
            for t, name in enumerate(names)
        ],
        "path": [
            {"pass": number, "kept": [names[t] for t in np.flatnonzero(row)]}
            for number, row in enumerate(kept, start=1)
        ],
        "peak_instantiated": int(instantiated_by_pass.max(initial=0)),
        "instantiated_by_pass": instantiated_by_pass.tolist(),
    }
