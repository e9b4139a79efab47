"""Nobody reads the output of the stack: it works on, and it stops."""

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx

from tests.services import wait_until

#: Each request logs about 200 bytes. A pipe holds 64 KiB, and the buffers of the processes a few MiB.
REQUESTS = 1500


def test_a_full_pipe_blocks_neither_requests_nor_the_stop(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    command = [
        sys.executable,
        "-m",
        "tagsmith.cli",
        "up",
        "-v",
        "--port",
        "0",
        "--data-dir",
        str(tmp_path / "data"),
    ]
    process = subprocess.Popen(command, stdout=writing, stderr=writing)
    try:
        state = tmp_path / "data" / "run" / "state.json"
        wait_until(state.exists, "the stack to start", 300)
        url = json.loads(state.read_text())["url"]
        with httpx.Client(base_url=url, timeout=5) as client:
            for _ in range(REQUESTS):
                assert client.get("/models").status_code == 200
            assert client.get("/livez").status_code == 200
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(reading)
        os.close(writing)
