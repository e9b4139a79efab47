"""Faults inside the processes of a service: changed functions, and clocks that jump."""

import mmap
import os
import shutil
import struct
import subprocess
import textwrap
from collections.abc import Collection
from pathlib import Path

INJECTED = Path(__file__).parents[1] / "injected"

#: Clocks jump only where there is one.
COMPILER = "cc"
SAME_IDENTITY = "same-identity"
#: Processes whose clock differs, at most.
_SLOTS = 16
_SLOT = struct.Struct("qq")
#: CLOCK_REALTIME of a process is that of the machine plus its offset. Monotonic time does not jump.
_CLOCK = textwrap.dedent(
    """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <fcntl.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <sys/syscall.h>
    #include <sys/time.h>
    #include <time.h>
    #include <unistd.h>

    struct slot { long long pid, seconds; };
    static struct slot *slots;

    __attribute__((constructor)) static void open_slots(void) {
        const char *path = getenv("DRILL_CLOCKS");
        int file = path ? open(path, O_RDONLY) : -1;
        if (file < 0) return;
        void *found = mmap(0, 16 * sizeof(struct slot), PROT_READ, MAP_SHARED, file, 0);
        if (found != MAP_FAILED) slots = found;
        close(file);
    }

    static long long offset(void) {
        if (!slots) return 0;
        long long pid = getpid();
        for (int i = 0; i < 16; i++) if (slots[i].pid == pid) return slots[i].seconds;
        return 0;
    }

    int clock_gettime(clockid_t clock, struct timespec *at) {
        static int (*real)(clockid_t, struct timespec *);
        if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
        int code = real(clock, at);
        if (!code && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += offset();
        return code;
    }

    int gettimeofday(struct timeval *restrict at, void *restrict zone) {
        static int (*real)(struct timeval *, void *);
        if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
        int code = real(at, zone);
        if (!code && at) at->tv_sec += offset();
        return code;
    }

    time_t time(time_t *at) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (at) *at = now.tv_sec;
        return now.tv_sec;
    }
    """
)


class Inside:
    """Controls the faults inside the processes that are started with `environment`."""

    def __init__(self, folder: Path) -> None:
        self._faults = folder / "faults"
        self._faults.mkdir(parents=True)
        clocks = folder / "clocks"
        clocks.write_bytes(bytes(_SLOTS * _SLOT.size))
        with clocks.open("r+b") as file:
            self._clocks = mmap.mmap(file.fileno(), 0)
        self.environment = {
            "PYTHONPATH": os.pathsep.join(filter(None, (str(INJECTED), os.environ.get("PYTHONPATH")))),
            "DRILL_FAULTS": str(self._faults),
            "DRILL_CLOCKS": str(clocks),
        }
        if shutil.which(COMPILER):
            self.environment["LD_PRELOAD"] = str(_compiled_clock(folder))

    def arm(self, fault: str, text: str = "yes") -> None:
        """Let a fault of `injected/sitecustomize.py` happen."""
        # A file that exists is complete.
        partial = self._faults / ".partial"
        partial.write_text(text)
        partial.rename(self._faults / fault)

    def is_armed(self, fault: str) -> bool:
        """Whether it has not happened yet."""
        path = self._faults / fault
        return path.exists() and path.stat().st_size > 0

    def disarm(self) -> None:
        """Let no further fault happen, and set the clocks right. Workers keep their identity."""
        for path in self._faults.iterdir():
            if path.name != SAME_IDENTITY:
                path.unlink(missing_ok=True)
        self.shift_clocks((), 0)

    def shift_clocks(self, pids: Collection[int], seconds: int) -> None:
        """Let the clocks of these processes, and of no others, differ by some seconds."""
        assert len(pids) <= _SLOTS
        rows = [(pid, seconds) for pid in pids]
        for place, row in enumerate(rows + [(0, 0)] * (_SLOTS - len(rows))):
            _SLOT.pack_into(self._clocks, place * _SLOT.size, *row)


def _compiled_clock(folder: Path) -> Path:
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(_CLOCK)
    subprocess.run([COMPILER, "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return library
