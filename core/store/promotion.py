"""Whether the policy of a model lets an alias stand for a version, by the scores that are stored."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from core.errors import Conflict, Fault
from core.store import evaluations, policies, tables
from core.store.models import VersionRow
from core.store.policies import Promotion

#: Percentages are rounded numbers: 93.6 less 93.1 must count as a drop of 0.5.
ROUNDING = 1e-9


class Refused(Conflict):
    """The policy of the model does not let the alias stand for the version."""

    default_code = "policy_not_met"


@dataclass(frozen=True, slots=True)
class _Scored:
    """A version, and its metrics if anybody measured them."""

    name: str
    metrics: Mapping[str, Any] | None


def check(
    conn: Connection, alias: str, version: VersionRow, champion: VersionRow | None, *, force: bool
) -> str | None:
    """Raise Refused when the policy is against the move; with `force`, give what it has against it instead.

    `champion` is what the alias stands for now, None when it is new. Nothing is measured here: a score that a rule
    needs and nobody has measured is against the move as well.
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
    raise Refused(
        f"The policy of {version.model} does not let {alias} stand for version {version.version}: "
        f"{'; '.join(reasons)}. {_advice(promotion, unscored)}",
        [Fault(reason, pointer="/version") for reason in reasons],
        code="not_evaluated" if len(unscored) == len(reasons) else None,
    )


def rules_for_new(conn: Connection, model: str, alias: str) -> Promotion | None:
    """The rules that a version yet to be trained must meet before the alias may stand for it, if any need a score."""
    promotion = _guarding(conn, model, alias)
    known = tables.alias.c
    query = sa.select(known.seq).where(known.model == model, known.alias == alias)
    new_alias = conn.execute(query).one_or_none() is None
    return promotion if promotion is not None and _applies(promotion, new_alias=new_alias) else None


def _guarding(conn: Connection, model: str, alias: str) -> Promotion | None:
    policy = policies.find(conn, model)
    promotion = None if policy is None else policy.promotion
    return promotion if promotion is not None and alias in promotion.aliases else None


def _applies(promotion: Promotion, *, new_alias: bool) -> bool:
    """Whether there is a rule to meet: what an alias stands for first has nothing to fall below."""
    return promotion.minimum is not None or (promotion.compares and not new_alias)


def _scored(conn: Connection, version: VersionRow, promotion: Promotion) -> _Scored:
    return _Scored(f"{version.model}:{version.version}", evaluations.metrics(conn, version, promotion.corpus))


def _broken(promotion: Promotion, head: _Scored, base: _Scored | None) -> Iterator[str]:
    """What the scores that are known have against the move."""
    if head.metrics is None:
        return
    metric, on = promotion.metric, _on(promotion)
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
        # One is reason enough: a model of fifty types would fill a page.
        before, after, kind = max(fallen, key=lambda each: each[0] - each[1])
        others = "" if len(fallen) == 1 else f" (other types that fall too far: {len(fallen) - 1})"
        yield (
            f"f1 of {kind} of {head.name} {on} is "
            f"{_drop(before, after, base.name, promotion.max_type_drop)}{others}"
        )


def _falls(before: float, after: float, allowed: float | None) -> bool:
    return allowed is not None and before - after > allowed + ROUNDING


def _drop(before: float, after: float, base: str, allowed: float | None) -> str:
    return (
        f"{_shown(after)}, which is {_shown(before - after)} below the {_shown(before)} of {base}, "
        f"and a drop of {_shown(allowed or 0.0)} is allowed"
    )


def _advice(promotion: Promotion, unscored: Sequence[str]) -> str:
    if not unscored:
        return 'Choose another version, or send "force": true with a reason.'
    if promotion.corpus is None:
        return 'Train with a dev set, name a corpus in the policy, or send "force": true with a reason.'
    job = {"kind": "evaluate", "models": list(unscored), "corpus": promotion.corpus}
    return f'Evaluate first: POST /jobs {orjson.dumps(job).decode()}. Or send "force": true with a reason.'


def _on(promotion: Promotion) -> str:
    return "on its dev set" if promotion.corpus is None else f"on {promotion.corpus}"


def _shown(score: float) -> str:
    """Enough digits to tell one span in ten thousand, and none that say nothing."""
    return f"{score:.4f}".rstrip("0").rstrip(".")
