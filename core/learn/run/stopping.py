"""Rules for stopping a run early."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from tagsmith.core.base.spec import Spec

StopReason = Literal["passes", "patience", "flat", "max_seconds", "tolerance", "converged"]


class StopRule(Spec):
    """When to stop before all passes are done. `max_seconds` is the time budget, with any rule."""

    max_seconds: Annotated[float, Field(gt=0, le=31_536_000)] | None = None

    @property
    def keeps_best(self) -> bool:
        """Whether the model has the weights of the best pass instead of the last one."""
        return False


class PatienceStop(StopRule):
    """Stop after `patience` passes without a better dev score; the model then has the weights of the best pass.

    Without `patience`, only the time budget applies, and the model has the weights of the last pass.
    """

    kind: Literal["patience"] = "patience"
    patience: Annotated[int, Field(ge=1, le=100_000)] | None = None

    @property
    def keeps_best(self) -> bool:
        return self.patience is not None


class FlatStop(StopRule):
    """Stop when the dev scores of `window` adjacent passes differ by less than `deviation` (points of 100).

    Sun et al. (2014, section 4.6.1) call this empirical convergence. Without dev, the rule applies to the objective,
    relative to its last value (0.01 means 1 percent). The model has the weights of the last pass.
    """

    kind: Literal["flat"]
    window: Annotated[int, Field(ge=2, le=1000)] = 5
    deviation: Annotated[float, Field(gt=0, le=100)] = 0.01


def _stop_kind(stop: Any) -> str | None:
    """Distinguish the rules; a rule without a kind has the kind patience."""
    kind = stop.get("kind", "patience") if isinstance(stop, dict) else getattr(stop, "kind", None)
    return f"by {kind}" if kind in ("patience", "flat") else None


# The tags differ from the kinds: a tag that equals a field name would be mistaken for that field in error paths.
Stop = Annotated[
    Annotated[PatienceStop, Tag("by patience")] | Annotated[FlatStop, Tag("by flat")],
    Discriminator(
        _stop_kind,
        custom_error_type="union_tag_stop",
        custom_error_message="Input should be 'patience' or 'flat'",
        custom_error_context={"discriminator": "kind"},
    ),
]


def is_flat(curve: Sequence[Mapping[str, Any]], window: int, deviation: float) -> bool:
    """Whether the last `window` scores differ by less than `deviation`. Without scores, use the relative objectives."""
    last = curve[-window:]
    if len(last) < window:
        return False
    scores = [point["dev_score"] for point in last]
    if None not in scores:
        return bool(max(scores) - min(scores) < deviation)
    # Do not mix estimated and exact objectives, which two-stage training has in one run.
    if len({point["objective_kind"] for point in last}) > 1:
        return False
    objectives = [point["objective"] for point in last]
    return bool(max(objectives) - min(objectives) < deviation * abs(objectives[-1]))
