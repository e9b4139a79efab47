"""Checks whether the policy of a model allows an alias to move, by the stored scores."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import Conflict, Fault
from tagsmith.core.registry import evaluations, policies
from tagsmith.core.registry.models import VersionRow
from tagsmith.core.registry.policies import PromotionRules
from tagsmith.core.store import tables

#: Tolerance for rounding: 93.6 - 93.1 must count as a drop of 0.5.
ROUNDING = 1e-9


class PromotionRefused(Conflict):
    """The policy of the model does not allow the alias to point to the version."""

    default_code = "policy_not_met"


@dataclass(frozen=True, slots=True)
class _Scored:
    """A version and its stored metrics, if any."""

    name: str
    metrics: Mapping[str, Any] | None


def check(
    conn: Connection, alias: str, version: VersionRow, champion: VersionRow | None, *, force: bool
) -> str | None:
    """Raise PromotionRefused if the policy objects to the move; with `force`, return the objections instead.

    `champion` is the present version of the alias, None for a new alias. Nothing is evaluated here: a missing score is
    an objection too.
    """
    promotion = _guarding(conn, version.model, alias)
    if promotion is None or not _applies(promotion, new_alias=champion is None):
        return None
    head = _scored(conn, version, promotion)
    base = None if champion is None or not promotion.compares else _scored(conn, champion, promotion)
    unscored = [each.name for each in (head, base) if each is not None and each.metrics is None]
    reasons = [
        *_broken(promotion, head, base),
        *(f"{promotion.metric} of {name} {_on(promotion)} is not known" for name in unscored),
    ]
    if not reasons:
        return None
    if force:
        return "; ".join(reasons)
    raise PromotionRefused(
        f"The policy of {version.model} does not allow {alias} to point to version {version.version}: "
        f"{'; '.join(reasons)}. {_advice(promotion, unscored)}",
        [Fault(reason, pointer="/version") for reason in reasons],
        code="not_evaluated" if len(unscored) == len(reasons) else None,
    )


def rules_for_new(conn: Connection, model: str, alias: str) -> PromotionRules | None:
    """Return the rules for promoting a version that is not trained yet, if any of them needs a score."""
    promotion = _guarding(conn, model, alias)
    known = tables.alias.c
    query = sa.select(known.seq).where(known.model == model, known.alias == alias)
    new_alias = conn.execute(query).one_or_none() is None
    return promotion if promotion is not None and _applies(promotion, new_alias=new_alias) else None


def _guarding(conn: Connection, model: str, alias: str) -> PromotionRules | None:
    policy = policies.find(conn, model)
    promotion = None if policy is None else policy.promotion
    return promotion if promotion is not None and alias in promotion.aliases else None


def _applies(promotion: PromotionRules, *, new_alias: bool) -> bool:
    """Whether there is a rule to check. The first version of an alias has nothing to be compared with."""
    return promotion.minimum is not None or (promotion.compares and not new_alias)


def _scored(conn: Connection, version: VersionRow, promotion: PromotionRules) -> _Scored:
    name = f"{version.model}:{version.version}"
    if promotion.corpus is None:
        return _Scored(name, version.metrics.get("dev"))
    return _Scored(name, evaluations.metrics_on(conn, version.model, version.version, promotion.corpus))


def _broken(promotion: PromotionRules, head: _Scored, base: _Scored | None) -> Iterator[str]:
    """Yield the objections of the rules, by the known scores."""
    if head.metrics is None:
        return
    metric, on = promotion.metric, _on(promotion)
    for each in (head, base):
        if each is not None and each.metrics is not None and each.metrics.get(metric) is None:
            yield f"{each.name} has no {metric}: change the metric of the policy to {_other(each.metrics)}"
            return
    score = float(head.metrics[metric])
    if promotion.minimum is not None and score < promotion.minimum - ROUNDING:
        yield f"{metric} of {head.name} {on} is {_shown(score)}, and the minimum is {_shown(promotion.minimum)}"
    if base is None or base.metrics is None:
        return
    before = float(base.metrics[metric])
    if _falls(before, score, promotion.max_drop):
        yield f"{metric} of {head.name} {on} is {_drop(before, score, base.name, promotion.max_drop)}"
    found = head.metrics["by_type"]
    fallen = [
        (of_base["f1"], found[kind]["f1"], kind)
        for kind, of_base in base.metrics["by_type"].items()
        if of_base["gold"]
        and kind in found
        and _falls(of_base["f1"], found[kind]["f1"], promotion.max_type_drop)
    ]
    if fallen:
        # List only the largest drop: a model can have dozens of types.
        before, after, kind = max(fallen, key=lambda each: each[0] - each[1])
        others = "" if len(fallen) == 1 else f" (other types that fall too far: {len(fallen) - 1})"
        yield (
            f"f1 of {kind} of {head.name} {on} is "
            f"{_drop(before, after, base.name, promotion.max_type_drop)}{others}"
        )


def _other(metrics: Mapping[str, Any]) -> str:
    """Name the metric that versions like this one are compared by."""
    return str(metrics.get("score", "f1"))


def _falls(before: float, after: float, allowed: float | None) -> bool:
    return allowed is not None and before - after > allowed + ROUNDING


def _drop(before: float, after: float, base: str, allowed: float | None) -> str:
    return (
        f"{_shown(after)}, which is {_shown(before - after)} below the {_shown(before)} of {base}, "
        f"and a drop of {_shown(allowed or 0.0)} is allowed"
    )


def _advice(promotion: PromotionRules, unscored: Sequence[str]) -> str:
    if not unscored:
        return 'Choose another version, or send "force": true with a reason.'
    if promotion.corpus is None:
        return 'Train with a dev set, name a corpus in the policy, or send "force": true with a reason.'
    job = {"kind": "evaluate", "models": list(unscored), "corpus": promotion.corpus}
    return f'Evaluate first: POST /jobs {orjson.dumps(job).decode()}. Or send "force": true with a reason.'


def _on(promotion: PromotionRules) -> str:
    return "on its dev set" if promotion.corpus is None else f"on {promotion.corpus}"


def _shown(score: float) -> str:
    """Format with enough digits to show one span in ten thousand, without trailing zeros."""
    return f"{score:.4f}".rstrip("0").rstrip(".")
