"""Helpers to end child processes together with their parent."""

import ctypes
import functools
import os
import signal
import sys
from collections.abc import Callable

import psutil

#: `prctl` option that sets the signal that a process receives when its parent dies (linux/prctl.h).
PR_SET_PDEATHSIG = 1


def die_with_parent(death_signal: signal.Signals = signal.SIGTERM) -> Callable[[], None] | None:
    """Return a `preexec_fn` that makes the kernel signal the child when its parent ends for any reason.

    The kernel sends the signal once per thread of the parent, so a handler must accept repeated signals.
    Linux only. On other systems it returns None, and the next start ends the processes listed in the pid files.
    """
    if sys.platform != "linux":
        return None
    # Loaded in the parent: between fork and exec only functions that are already resolved are safe.
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return functools.partial(_bind_to_parent, prctl, os.getpid(), int(death_signal))


def _bind_to_parent(prctl: Callable[[int, int], int], parent_pid: int, death_signal: int) -> None:
    # Until exec the child has the parent's signal handlers, which would swallow the signal.
    signal.signal(death_signal, signal.SIG_DFL)
    prctl(PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent_pid:
        os._exit(1)  # the parent died between fork and prctl: the kernel sends no signal


def started_at(pid: int) -> float | None:
    """Return the start time of process `pid`, or None if it is not running. Pid and start time identify a process."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None


def end_group(pid: int, deadline_s: float) -> None:
    """End the process group of `pid` with SIGTERM, and after `deadline_s` with SIGKILL."""
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
