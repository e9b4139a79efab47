"""The cost of a wrong label: 1 (Hamming), or the cost that the spec sets for the gold label."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.learn.problem.problem import Problem

#: Costs by gold label, for labels whose loss counts more or less than 1.
Costs = Annotated[dict[str, Annotated[float, Field(ge=0, le=1e6)]], Field(max_length=32_767)]


def cost_vector(costs: dict[str, float], problem: Problem, dtype: Any) -> NDArray[Any]:
    """Return the cost of missing each label; raise Invalid if a label is not in the corpus."""
    unknown = [label for label in costs if label not in problem.labels]
    if unknown:
        faults = [
            Fault(f"The corpus has no label {label!r}.", pointer=f"/trainer/costs/{label}")
            for label in unknown
        ]
        raise Invalid(
            "The costs name labels that the corpus does not have. Remove them.", faults, code="unknown_label"
        )
    return np.array([costs.get(label, 1.0) for label in problem.labels], dtype)
