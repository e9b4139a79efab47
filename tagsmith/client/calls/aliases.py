"""Calls about aliases and policies."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tagsmith.client.call import Call, Pages, as_model, as_nothing, given, idempotency, if_match, path_of
from tagsmith.wire import Alias, Move, Policy, RetentionPlan
from tagsmith.wire.names import DEFAULT_ALIAS


def aliases(name: str) -> Pages[Alias]:
    """List the aliases of a model."""
    return Pages(Alias, path_of("models", name, "aliases"))


def alias(name: str, alias: str, *, at: datetime | str | None = None) -> Call[Alias]:
    """Get the version that an alias points to, or pointed to at a time."""
    params = given(at=_text_of(at))
    return Call("GET", path_of("models", name, "aliases", alias), as_model(Alias), params)


def promote(
    name: str,
    version: int,
    alias: str = DEFAULT_ALIAS,
    *,
    reason: str | None = None,
    if_match: int | str | None = None,
    force: bool = False,
) -> Call[Alias]:
    """Point an alias at a version; with `if_match` (a `seq`), only if nobody has moved it since.

    `force` moves it against the policy of the model, and needs a reason.
    """
    body = {"version": version, "reason": reason, "force": force}
    path = path_of("models", name, "aliases", alias)
    return Call("PUT", path, as_model(Alias), json=body, headers=_condition(if_match))


def rollback(
    name: str,
    alias: str = DEFAULT_ALIAS,
    *,
    reason: str | None = None,
    steps: int | None = None,
    to: int | datetime | str | None = None,
    if_match: int | str | None = None,
    idempotency_key: str | None = None,
) -> Call[Alias]:
    """Return an alias to an earlier target: one step back, `steps` back, or to a move (`seq`) or a time."""
    body = {"reason": reason, "steps": steps, "to": to if isinstance(to, int) else _text_of(to)}
    path = path_of("models", name, "aliases", alias, "rollback")
    headers = _condition(if_match) | idempotency(idempotency_key)
    return Call("POST", path, as_model(Alias), json=body, headers=headers)


def history(name: str, alias: str = DEFAULT_ALIAS) -> Pages[Move]:
    """List the moves of an alias, newest first."""
    return Pages(Move, path_of("models", name, "aliases", alias, "history"))


def policy(name: str) -> Call[Policy]:
    """Get the policy of a model."""
    return Call("GET", path_of("models", name, "policy"), as_model(Policy))


def set_policy(
    name: str,
    promotion: Mapping[str, Any] | None = None,
    retention: Mapping[str, Any] | None = None,
    *,
    if_match: int | str | None = None,
) -> Call[Policy]:
    """Set the policy of a model, replacing the whole of the present one."""
    body = {"promotion": promotion, "retention": retention}
    path = path_of("models", name, "policy")
    return Call("PUT", path, as_model(Policy), json=body, headers=_condition(if_match))


def delete_policy(name: str, *, if_match: int | str | None = None) -> Call[None]:
    """Delete the policy of a model."""
    return Call("DELETE", path_of("models", name, "policy"), as_nothing, headers=_condition(if_match))


def retention(
    name: str, *, keep_last: int | None = None, keep_rollbacks: int | None = None
) -> Call[RetentionPlan]:
    """Get the versions that the policy, or the values given instead, would remove. Removes nothing."""
    params = given(keep_last=keep_last, keep_rollbacks=keep_rollbacks)
    return Call("GET", path_of("models", name, "retention"), as_model(RetentionPlan), params)


#: The parameters of the calls hide the function of that name.
_condition = if_match


def _text_of(time: datetime | str | None) -> str | None:
    return time.isoformat() if isinstance(time, datetime) else time
