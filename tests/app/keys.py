"""Servers where keys are in force, and callers with keys of each scope."""

from collections.abc import Callable
from datetime import timedelta

import httpx

from tagsmith.core.store import keys
from tagsmith.core.store.engine import Database
from tagsmith.core.store.keys import Scope


class Callers:
    """Makes clients, each with a key of its own."""

    def __init__(self, database: Database, url: str) -> None:
        self._database = database
        self._url = url
        self._made: list[httpx.Client] = []

    def token(self, *scopes: str, name: str = "test", expires_in: timedelta | None = None) -> str:
        with self._database.write() as conn:
            return keys.create(conn, name, map(Scope, scopes), expires_in=expires_in)[1]

    def client(self, *scopes: str, name: str = "test") -> httpx.Client:
        return self.with_token(self.token(*scopes, name=name))

    def with_token(self, token: str) -> httpx.Client:
        made = httpx.Client(base_url=self._url, headers={"Authorization": f"Bearer {token}"}, timeout=30)
        self._made.append(made)
        return made

    def close(self) -> None:
        for each in self._made:
            each.close()


def id_of(token: str) -> str:
    """The id of a key is the first part of its token."""
    return token[:30]


def statuses(calls: dict[str, Callable[[], httpx.Response]]) -> dict[str, int]:
    return {name: call().status_code for name, call in calls.items()}
