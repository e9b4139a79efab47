"""Calls about keys, the audit log and the server itself."""

from collections.abc import Sequence

from tagsmith.client.call import Call, Pages, as_model, as_nothing, as_text, given, idempotency, path_of
from tagsmith.wire import ApiKey, AuditEntry, CreatedKey, KeyScope, Liveness, Readiness, ServerVersion


def create_key(
    name: str,
    scopes: Sequence[KeyScope],
    *,
    expires_in_seconds: int | None = None,
    idempotency_key: str | None = None,
) -> Call[CreatedKey]:
    """Create a key. The response is the only one that contains its token.

    Without an `idempotency_key`, the call is not repeated after a lost connection: a second response has no token.
    """
    body = {"name": name, "scopes": list(scopes), "expires_in_seconds": expires_in_seconds}
    headers = {} if idempotency_key is None else idempotency(idempotency_key)
    return Call("POST", "/keys", as_model(CreatedKey), json=body, headers=headers)


def keys() -> Pages[ApiKey]:
    """List all keys, newest first, including revoked and expired ones."""
    return Pages(ApiKey, "/keys")


def key(key_id: str) -> Call[ApiKey]:
    """Get one key, without its token."""
    return Call("GET", path_of("keys", key_id), as_model(ApiKey))


def revoke_key(key_id: str) -> Call[None]:
    """Revoke a key."""
    return Call("DELETE", path_of("keys", key_id), as_nothing)


def audit(*, key: str | None = None) -> Pages[AuditEntry]:
    """List the changes that requests made, newest first; with `key`, only those made with that key."""
    return Pages(AuditEntry, "/audit", given(key=key))


def liveness() -> Call[Liveness]:
    """Check that the server process responds."""
    return Call("GET", "/livez", as_model(Liveness), patient=False)


def readiness() -> Call[Readiness]:
    """Get what is ready and what is not. A server that cannot serve raises ApiError with status 503."""
    return Call("GET", "/readyz", as_model(Readiness), patient=False)


def server_version() -> Call[ServerVersion]:
    """Get which code the server runs."""
    return Call("GET", "/version", as_model(ServerVersion))


def metrics() -> Call[str]:
    """Get the metrics of the server in Prometheus's text format."""
    return Call("GET", "/metrics", as_text)
