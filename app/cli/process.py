"""Child processes that do not outlive the process that started them."""

import ctypes
import functools
import os
import signal
import sys
from collections.abc import Callable

import psutil

#: `prctl` option that names the signal a process gets when its parent dies (linux/prctl.h).
PR_SET_PDEATHSIG = 1


def die_with_parent(death_signal: signal.Signals = signal.SIGTERM) -> Callable[[], None] | None:
    """Give a `preexec_fn` that has the kernel signal the child when its parent ends, however it ends.

    The signal comes once for every thread of the parent, as they end one after another: a handler must bear that.
    Linux only. Elsewhere there is none, and the next start ends what the pid files of this run name.
    """
    if sys.platform != "linux":
        return None
    # Loaded here and not in the child: between fork and exec only calls already resolved are safe.
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return functools.partial(_bind_to_parent, prctl, os.getpid(), int(death_signal))


def _bind_to_parent(prctl: Callable[[int, int], int], parent_pid: int, death_signal: int) -> None:
    # Until exec the child has the parent's handlers, which would take the signal and do nothing.
    signal.signal(death_signal, signal.SIG_DFL)
    prctl(PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent_pid:
        os._exit(1)  # the parent died between fork and prctl: no signal will come


def started_at(pid: int) -> float | None:
    """Give when process `pid` started, None when there is none. Pid and time together name one process."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None


def end_group(pid: int, deadline_s: float) -> None:
    """End the process `pid` and all of its process group: politely, then after `deadline_s` by force."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(pid, sent)
        except (ProcessLookupError, PermissionError):
            return
        try:
            psutil.Process(pid).wait(timeout=deadline_s)
        except psutil.NoSuchProcess:
            continue
        except psutil.TimeoutExpired:
            continue
