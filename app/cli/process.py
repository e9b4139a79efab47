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

    The parent is the thread that forked, so the signal can arrive several times: prctl(2), PR_SET_PDEATHSIG.
    Linux only. On other systems it returns None, and the next start ends the processes listed in the pid files.
    """
    if sys.platform != "linux":
        return None
    # Look it up before the fork: loading a library between fork and exec can deadlock.
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


def end_group(pid: int, timeout_s: float) -> None:
    """Send SIGTERM to the process group. When its leader has ended, or after `timeout_s`, send SIGKILL to the rest."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(pid, signum)
        except (ProcessLookupError, PermissionError):
            return
        try:
            psutil.Process(pid).wait(timeout=timeout_s)
        except psutil.NoSuchProcess:
            continue
        except psutil.TimeoutExpired:
            continue
