"""A stream that nobody reads makes no caller wait, and keeps no process alive."""

import io
import os
import subprocess
import sys
import threading
import time

import pytest

from tagsmith.core.service.lines import LineWriter


class Stalled(io.StringIO):
    """A stream whose reader does not read until told."""

    def __init__(self) -> None:
        super().__init__()
        self.reads, self.reached = threading.Event(), threading.Event()

    def write(self, text: str) -> int:
        self.reached.set()
        assert self.reads.wait(30)
        return super().write(text)


def test_a_stalled_reader_delays_nobody_and_dropped_lines_are_counted_and_told() -> None:
    stream = Stalled()
    writer = LineWriter(stream, lambda count: f"dropped {count}\n", limit=100)
    writer.write("first\n")
    assert stream.reached.wait(30)
    began = time.monotonic()
    for _ in range(50):
        writer.write("123456789\n")
    writer.flush(0.01)  # gives up
    assert time.monotonic() - began < 5
    assert writer.dropped == 40
    stream.reads.set()
    writer.flush()
    assert stream.getvalue() == "first\n" + "123456789\n" * 10 + "dropped 40\n"
    writer.write("again\n")
    writer.flush()
    assert stream.getvalue().endswith("again\n")


def test_a_stream_that_is_closed_takes_nothing_more() -> None:
    stream = io.StringIO()
    writer = LineWriter(stream)
    writer.write("a\n")
    writer.flush()
    stream.close()
    writer.write("b\n")
    writer.flush()
    writer.write("c\n")
    writer.flush()
    assert writer.dropped == 1


def test_lines_without_hurry_come_in_their_order() -> None:
    stream = io.StringIO()
    writer = LineWriter(stream)
    for i in range(100):
        writer.write(f"{i}\n", soon=i % 7 == 0)
    writer.flush()
    assert stream.getvalue() == "".join(f"{i}\n" for i in range(100))


@pytest.mark.parametrize("signal", ["TERM", "none"])
def test_a_process_whose_log_nobody_reads_works_on_and_ends(signal: str) -> None:
    program = """
import logging, sys, time
from tagsmith.core.service import logs
logs.configure(logging.INFO)
for i in range(20_000):
    logging.info("x" * 500)
print("done", logs.dropped(), flush=True)
time.sleep(60 if sys.argv[1] == "TERM" else 0)
"""
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", program, signal], stderr=writing, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    done, dropped = process.stdout.readline().split()
    assert done == "done"
    assert int(dropped) > 1000
    if signal == "TERM":
        process.terminate()
    assert process.wait(30) == (-15 if signal == "TERM" else 0)
    os.close(reading)
    os.close(writing)
    process.stdout.close()
