"""The process that calls functions with limited memory: `python -m tagsmith.app.reading.process DESCRIPTOR`.

It imports everything once and forks for each call, which takes milliseconds. A call that needs too much memory ends a
process that nobody else uses. The parent ends when its API process closes the socket `DESCRIPTOR`, or after a time
without calls. `bounded.BoundedCalls` is the other side.
"""

import contextlib
import os
import resource
import select
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from tagsmith.app.corpora import exports, sentences
from tagsmith.app.corpora import upload as corpus_upload
from tagsmith.app.features import service as features
from tagsmith.app.lexicons import upload as lexicon_upload
from tagsmith.app.models import upload as model_upload
from tagsmith.app.reading.messages import (
    BoundedCall,
    Died,
    Failed,
    Outcome,
    OutOfMemory,
    Raised,
    Returned,
    receive,
    send,
)
from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.corpus.formats import registry as formats

#: Modules of the functions that are called, imported once for all calls.
CALLED = (corpus_upload, lexicon_upload, model_upload, exports, sentences, features)
#: A process without calls for this long ends, and gives its memory back.
IDLE_S = 600.0
#: Files of one call: the socket of the call, and what it reads and writes.
MAX_FILES = 128
#: CPU time limit of one call. The slowest format reads 1 GiB in a few minutes.
MAX_CPU_S = 1800
#: The kernel ends this process first when the memory of the machine or container is exhausted.
OOM_SCORE = "1000"


def main(control: socket.socket) -> None:
    """Fork for each call until the other side closes `control`, or nobody calls for `IDLE_S`."""
    # Ctrl-C reaches every process of the terminal. This one ends with its API process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    formats.warm()
    ended, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    while True:
        readable, _, _ = select.select([control, ended], [], [], IDLE_S)
        if ended in readable:
            ended.recv(4096)
            _reap(running)
        if control in readable:
            message, descriptors, _, _ = socket.recv_fds(control, 1, MAX_FILES)
            if not message:
                return
            pid = os.fork()
            if pid == 0:
                control.close()
                _child(descriptors)
            running[pid] = socket.socket(fileno=descriptors[0])
            for descriptor in descriptors[1:]:
                os.close(descriptor)
        if not readable and not running:
            return


def _reap(running: dict[int, socket.socket]) -> None:
    """Report the calls whose process died, and forget those that ended."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with running.pop(pid) as call:
            if status != 0:
                with contextlib.suppress(OSError):  # nobody waits any more
                    send(call, Died(os.waitstatus_to_exitcode(status)))


def _child(descriptors: Sequence[int]) -> None:
    """Make one call, send its outcome and exit."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
    status = 1
    try:
        call = socket.socket(fileno=descriptors[0])
        files = [os.fdopen(descriptor, "r+b") for descriptor in descriptors[1:]]
        send(call, _outcome(receive(call), files))
        status = 0
    except BrokenPipeError:  # the API process has ended, or does not wait any more
        status = 0
    except BaseException:  # noqa: BLE001  # nothing may return into the loop of the parent
        traceback.print_exc()
    finally:
        os._exit(status)


def _outcome(call: BoundedCall, files: Sequence[IO[bytes]]) -> Outcome:
    _limit(call.memory_bytes)
    try:
        return Returned(call.function(files, *call.arguments))
    except MemoryError:
        return OutOfMemory()
    except (TagsmithError, OSError) as error:
        return Raised(error)
    except Exception:  # noqa: BLE001  # the other side logs it
        return Failed(traceback.format_exc())


def _limit(memory_bytes: int) -> None:
    """Limit the memory that this process allocates from now on, and its time."""
    # RLIMIT_DATA also counts the memory that is in use already: data and stack, in pages. Only Linux enforces it.
    with contextlib.suppress(OSError, ValueError):  # a lower limit is set already
        pages = int(Path("/proc/self/statm").read_text().split()[5])
        limit = pages * resource.getpagesize() + memory_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    # At the soft limit the process gets SIGXCPU, at the hard one SIGKILL, as if it had used too much memory.
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard == resource.RLIM_INFINITY or hard > MAX_CPU_S:
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
