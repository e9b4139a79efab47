"""The faults of the drills really happen: clocks jump, relays cut, links break, disks are small."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.drills.framework import namespaces, results
from tests.drills.framework.drill import known
from tests.drills.framework.inside import COMPILER, Inside
from tests.drills.framework.rehearsal import Outcome, seed_of
from tests.drills.framework.relay import Relay
from tests.drills.framework.results import Row

#: Prints its clock whenever it is asked.
CLOCK = "import sys, time\nfor _ in sys.stdin: print(int(time.time() - time.clock_gettime(7)), flush=True)"

needs_root = pytest.mark.skipif(not namespaces.are_permitted(), reason="namespaces need root")


@pytest.mark.skipif(shutil.which(COMPILER) is None, reason="needs a C compiler")
def test_the_clock_of_one_process_jumps_and_comes_back(tmp_path: Path) -> None:
    inside = Inside(tmp_path)
    environment = os.environ | inside.environment
    command = [sys.executable, "-c", CLOCK]
    processes = [
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]

    def clocks() -> list[int]:
        """Wall clock minus time since the start of the machine, which nobody shifts."""
        found = []
        for each in processes:
            assert each.stdin is not None
            assert each.stdout is not None
            each.stdin.write("\n")
            each.stdin.flush()
            found.append(int(each.stdout.readline()))
        return found

    try:
        one, other = clocks()
        inside.shift_clocks([processes[0].pid], 3600)
        shifted = clocks()
        assert shifted[0] - one == pytest.approx(3600, abs=2)
        assert shifted[1] - other == pytest.approx(0, abs=2)
        inside.disarm()
        assert clocks()[0] - one == pytest.approx(0, abs=2)
    finally:
        for each in processes:
            each.kill()
            each.communicate()


def test_a_relay_cuts_off_one_process_and_lets_it_in_again(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as listening:
        for each, name in ((server, "server"), (listening, "relay")):
            each.bind(str(tmp_path / name))
            each.listen()

        def connect(name: str) -> socket.socket:
            client = socket.socket(socket.AF_UNIX)
            client.connect(str(tmp_path / name))
            return client

        relay = Relay(listening, lambda: connect("server"))
        with connect("relay") as client:
            accepted, _ = server.accept()
            client.sendall(b"hello")
            assert accepted.recv(9) == b"hello"
            relay.cut({os.getpid() + 1})
            client.sendall(b"still")
            assert accepted.recv(9) == b"still"
            relay.cut({os.getpid()})
            assert client.recv(9) == b""
            assert accepted.recv(9) == b""
            accepted.close()
        with connect("relay") as refused:
            assert refused.recv(9) == b""
        relay.heal()
        with connect("relay") as client:
            accepted, _ = server.accept()
            accepted.sendall(b"back")
            assert client.recv(9) == b"back"
            accepted.close()
        relay.close()


@needs_root
def test_a_link_that_is_cut_passes_nothing_on_and_says_nothing() -> None:
    middle, host = namespaces.Network(), namespaces.Network()
    try:
        namespaces.link(middle, host, "host-1", ("10.77.1.1", "10.77.1.2"))
        with (
            middle.listening(("10.77.1.1", 5432)) as listening,
            host.connected(("10.77.1.1", 5432)) as client,
        ):
            server, _ = listening.accept()
            with server:
                middle.command("ip", "link", "set", "dev", "host-1", "down")
                client.sendall(b"into the void")
                server.settimeout(0.3)
                with pytest.raises(TimeoutError):
                    server.recv(99)
                middle.command("ip", "link", "set", "dev", "host-1", "up")
                server.settimeout(60)
                assert server.recv(99) == b"into the void"
    finally:
        middle.close()
        host.close()


def test_every_drill_has_words_and_issues_that_can_be_linked() -> None:
    for drill in known().values():
        row = Row("abc", 1, [Outcome(1, 0, 0, 0, 0.1, 0.2, hit=True, findings="")], "")
        (_, _, line) = results.table_lines({drill.name: drill}, {drill.name: row})
        assert line.count(" | ") == 12
        assert drill.fault in line


def test_a_repetition_has_a_seed_of_its_own() -> None:
    seeds = {seed_of(row, seed, number) for row in known() for seed in (1, 2) for number in range(20)}
    assert len(seeds) == len(known()) * 40
