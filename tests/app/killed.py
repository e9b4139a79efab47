"""An API process that kills itself around the commit of a change and is started again: `python -m tests.app.killed 3`.

The id of a request says when: `killed-before-commit...` or `killed-after-commit...`.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.engine import Connection

from tagsmith.app.cli import api, process
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import audit, engine
from tagsmith.core.store.audit import NewAuditEntry

_requested = threading.local()
_record, _write = audit.record, engine.Database.write


def record(conn: Connection, entry: NewAuditEntry) -> None:
    """Note which request makes a change in this thread."""
    _requested.id = entry.request_id
    _record(conn, entry)


@contextmanager
def write(self: engine.Database) -> Iterator[Connection]:
    """Die at the end of a transaction that has made a change."""
    _requested.id = ""
    with _write(self) as conn:
        yield conn
        if _requested.id.startswith("killed-before-commit"):
            os.kill(os.getpid(), signal.SIGKILL)
    if _requested.id.startswith("killed-after-commit"):
        os.kill(os.getpid(), signal.SIGKILL)


def main(descriptor: int) -> None:
    """Serve in a child, and in a new one whenever the last was killed. Forking saves the imports."""
    end_child: Any = process.die_with_parent()
    while True:
        child = os.fork()
        if child == 0:
            end_child()
            audit.record, engine.Database.write = record, write  # type: ignore[method-assign]
            sys.exit(api.serve(Settings.from_env(os.environ), descriptor))
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
