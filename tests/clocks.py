"""Processes whose time of day is wrong, and jumps: a library that is loaded before the C library."""

import struct
import subprocess
import sysconfig
from pathlib import Path

#: Adds the number of seconds in a file to the time of day. Monotonic clocks stay as they are, as in reality.
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const int64_t *seconds;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int file = open(getenv("TEST_CLOCK_FILE"), O_RDONLY);
    void *mapped = file < 0 ? MAP_FAILED : mmap(0, sizeof *seconds, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) abort();
    seconds = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!real_clock_gettime) begin();
    int failed = real_clock_gettime(clock, time);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += *seconds;
    return failed;
}

int gettimeofday(struct timeval *time, void *zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"""


class Clock:
    """The time of day of the processes that get its environment."""

    def __init__(self, folder: Path) -> None:
        source, self._library, self._file = folder / "clock.c", folder / "clock.so", folder / "clock"
        source.write_text(SOURCE)
        self.jump(0)
        compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
        subprocess.run([compiler, "-shared", "-fPIC", "-o", self._library, source, "-ldl"], check=True)

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "TEST_CLOCK_FILE": str(self._file)}

    def jump(self, seconds: int) -> None:
        """Set it to this many seconds ahead of the real time."""
        with self._file.open("r+b" if self._file.exists() else "w+b") as file:
            file.write(struct.pack("q", seconds))
