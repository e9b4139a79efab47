"""`sparseptron`: select templates, then train with these only (Martins, Smith, Aguiar & Figueiredo 2011, section 4).

The first stage is `prox-grad` with the perceptron loss and a budget or, for the lasso, a strength. Its result does not
depend on a rate. Shrinking biases the weights it keeps, so they are discarded: a second trainer starts from zero, with
the selected features. Passes are numbered consecutively over both stages.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationInfo, field_validator

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import readonly
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.base import Report, State, Trainer, part_of, put_part
from tagsmith.core.learn.trainers.margin.mira import MiraSpec
from tagsmith.core.learn.trainers.margin.online import OnlineSpec
from tagsmith.core.learn.trainers.proximal.instantiated import ROWS
from tagsmith.core.learn.trainers.proximal.prox_grad import (
    GroupsSpec,
    ProxGrad,
    ProxGradSpec,
    SelectionPasses,
    selection,
)
from tagsmith.core.learn.trainers.sizes import Sizes, sizes_of
from tagsmith.core.learn.trainers.stage_specs import SingleSpec
from tagsmith.core.learn.weights.rows import census
from tagsmith.core.learn.weights.scoring import Weights

#: The number of groups that are kept, unless the spec says otherwise.
DEFAULT_BUDGET = 30

_FIRST, _SECOND = "first.", "second."


class SparseptronSpec(GroupsSpec):
    """`budget` is the number of groups to keep; `passes`, those of the selection; `refit`, the trainer after it.

    `refit_features` is what the refit trains: the features with a non-zero weight after the selection, or all features
    of the selected templates.
    """

    example: ClassVar[dict[str, Any]] = {
        "kind": "sparseptron",
        "groups": "label",
        "passes": 1,
        "refit": OnlineSpec.example,
    }

    kind: Literal["sparseptron"] = "sparseptron"
    passes: SelectionPasses = 5
    refit: SingleSpec = MiraSpec()
    refit_features: Literal["nonzero", "template"] = "nonzero"

    @field_validator("strength")
    @classmethod
    def _has_a_strength(cls, strength: float | None, info: ValidationInfo) -> float | None:
        if strength is not None and info.data.get("groups") != "lasso":
            raise ValueError('`strength` applies only to groups "lasso". Set `budget`, or change `groups`.')
        return strength

    @classmethod
    def has_budget(cls, fields: Mapping[str, Any]) -> bool:
        return fields.get("groups") != "lasso"

    @property
    def total_passes(self) -> int:
        return self.passes + self.refit.passes

    def with_total_passes(self, passes: int) -> "SparseptronSpec":
        """Keep the passes of the selection and give the rest to the refit, at least one."""
        refit = self.refit.with_total_passes(max(1, passes - self.passes))
        return self.model_validate({**self.model_dump(), "refit": refit.model_dump()})

    @property
    def selection_passes(self) -> int:
        return self.passes

    @property
    def uses_threads(self) -> bool:
        return self.refit.uses_threads

    @property
    def calibrated(self) -> bool:
        return self.refit.calibrated

    def make(self, threads: int) -> "Sparseptron":
        return Sparseptron(self, self.refit.make(threads))

    def state_bytes(self, sizes: Sizes, threads: int) -> int:
        # The bits of the trainable weights, for all features and for the selected ones.
        bits = 2 * (sizes.rows * sizes.width // 8) if self.refit_features == "nonzero" else 0
        return self.selection().state_bytes(sizes, threads) + self.refit.state_bytes(sizes, threads) + bits

    def selection(self) -> ProxGradSpec:
        """Return the spec of the first stage."""
        shared = {name: getattr(self, name) for name in GroupsSpec.model_fields if name != "kind"}
        if self.groups != "lasso":
            shared["budget"] = self.budget or DEFAULT_BUDGET
        return ProxGradSpec.model_validate({**shared, "loss": "perceptron"})


class Sparseptron(Trainer):
    """Selection by `prox-grad`, then the second trainer on the selected features."""

    def __init__(self, spec: SparseptronSpec, second: Trainer) -> None:
        self.spec = spec
        self._first = ProxGrad(spec.selection())
        self._second = second
        #: A problem, the rows of its first stage, and what was selected from them.
        self._selected: tuple[Problem, NDArray[np.int32], Selected] | None = None

    def varies(self, name: str) -> bool:
        first = name.removeprefix(_FIRST)
        return name == "instantiated" or name.startswith(_SECOND) or self._first.varies(first)

    def start(self, problem: Problem, init: Weights | None = None) -> State:
        first = self._first.start(problem, init)
        # Of the second stage: the trainable features, the number of passes made, and the features after each pass.
        state: State = {
            "features": np.zeros(1, np.int64),
            "refitted": np.zeros(1, np.int64),
            "instantiated": np.zeros(0, np.int64),
        }
        put_part(state, _FIRST, first)
        return state

    def passes(self, problem: Problem, state: State, seed: int) -> Iterator[Report]:
        own = self.spec.passes
        if state[_FIRST + "passes"][0] < own:
            yield from self._select(problem, state, seed)
        second = part_of(state, _SECOND)
        selected = self._selected_of(problem, state)
        for report in self._second.passes(selected.problem, second, seed):
            # Also inside a pass: a stage may have replaced an array, and a run can be stopped at any report.
            put_part(state, _SECOND, second)
            if report.pass_done:
                active = census(self._second.weights(selected.problem, second).values)[0]
                state["instantiated"] = np.append(state["instantiated"], active)
                state["refitted"][0] += 1
            yield replace(report, pass_number=own + report.pass_number)

    def _select(self, problem: Problem, state: State, seed: int) -> Iterator[Report]:
        """Run the first stage. It also starts the second stage, so that a checkpoint at this point includes it."""
        first, own = part_of(state, _FIRST), self.spec.passes
        for report in self._first.passes(problem, first, seed):
            put_part(state, _FIRST, first)
            if report.pass_done and report.pass_number == own:
                selected = self._selected_of(problem, state).problem
                state["features"][0] = features = sizes_of(selected).parameters
                put_part(state, _SECOND, self._second.start(selected))
                summary = f"{report.message}, {features} features; stage 2: {self.spec.refit.kind}"
                yield replace(report, message=summary)
                return
            yield report

    def _selected_of(self, problem: Problem, state: State) -> "Selected":
        # The array of a run. It does not change after the selection.
        places = state[_FIRST + "places"]
        if self._selected is None or self._selected[0] is not problem or self._selected[1] is not places:
            self._selected = (problem, places, Selected(problem, part_of(state, _FIRST), self.spec))
        return self._selected[2]

    def weights(self, problem: Problem, state: State) -> Weights:
        if not state["refitted"][0]:
            return self._first.weights(problem, part_of(state, _FIRST))
        selected = self._selected_of(problem, state)
        return selected.spread(self._second.weights(selected.problem, part_of(state, _SECOND)))

    def penalty(self, weights: Weights, norm1: float, norm2: float) -> float:
        return self._second.penalty(weights, norm1, norm2)

    def findings(self, weights: Weights, state: State) -> dict[str, Any]:
        by_pass = np.concatenate([state[_FIRST + "instantiated"], state["instantiated"]])
        layout = self._first.layout(weights.problem)
        return {"selection": selection(layout, weights, state[_FIRST + "kept"], by_pass)}


class Selected:
    """A problem with only the selected features.

    With `refit_features` "nonzero": the features with a non-zero weight. With "template": all features of the kept
    templates or, if groups are smaller than templates, all labels of the kept attributes.
    """

    def __init__(self, problem: Problem, first: State, spec: SparseptronSpec) -> None:
        templates = problem.templates
        assert templates is not None
        kept, stored = first["kept"][-1].astype(np.bool_), first["places"] >= 0
        frozen = spec.refit_features == "nonzero"
        if not frozen and spec.groups in ("template", "coarse-to-fine"):
            used, used_edges = kept[templates.of_attributes], kept[templates.of_edge_attributes]
        else:
            used = stored[: problem.attributes]
            used_edges = stored[problem.blocks :].reshape(-1, len(problem.labels)).any(axis=1)
        edges = templates.transitions is not None and bool(kept[templates.transitions])
        limited = replace(problem, edges=edges, trainable=_nonzero(problem, first) if frozen else None)
        self.problem = limited.with_attributes(used, used_edges)
        self._whole = problem
        self._rows = problem.rows_with(used, used_edges)

    def spread(self, weights: Weights) -> Weights:
        """Convert weights of the selected features to weights of all features."""
        width = self._whole.width
        values = v.zeros(self._whole.rows * width, weights.values.dtype)
        values.reshape(-1, width)[self._rows] = weights.values.reshape(-1, width)
        return Weights(self._whole, values)


def _nonzero(problem: Problem, first: State) -> NDArray[np.uint8]:
    """Return one bit per weight: whether it is non-zero after the first stage. As in the mask of `Rows`."""
    stored = int(first["counts"][ROWS])
    weights = first["values"][: stored * problem.width].reshape(stored, problem.width)
    bits = np.zeros((problem.rows, problem.width // 8), np.uint8)
    bits[first["owners"][:stored]] = np.packbits(weights != 0, axis=1, bitorder="little")
    return readonly(bits.reshape(-1), np.uint8)
