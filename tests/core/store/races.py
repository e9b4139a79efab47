"""Transactions that meet."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from sqlalchemy import Connection

from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.store.engine import Database


class Attempt(NamedTuple):
    """What one side does, and the one way in which it may lose."""

    act: Callable[[Connection], object]
    lost: type[TagsmithError]


def race(db: Database, *attempts: Attempt) -> list[bool]:
    """Make the attempts at once, each in a transaction and a thread of its own; says which of them went through."""
    start = threading.Barrier(len(attempts))

    def went_through(attempt: Attempt) -> bool:
        start.wait()
        try:
            with db.write() as conn:
                attempt.act(conn)
        except attempt.lost:
            return False
        return True

    with ThreadPoolExecutor(len(attempts)) as pool:
        return list(pool.map(went_through, attempts))
