"""`tagsmith train` in a terminal: the live line, and Ctrl-C."""

import json
import os
import pty
import re
import select
import signal
import sys
import time
from pathlib import Path

from tagsmith.app.cli.background import BackgroundStack
from tests.cli.command import CommandRunner


def _in_terminal(
    arguments: list[str], environment: dict[str, str], until: str, interrupt: bool = False
) -> tuple[int, str]:
    """Run the command in a terminal of 100 columns; press Ctrl-C when it shows `until`, if wanted."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "tagsmith.cli", *arguments], environment)
    shown, pressed = b"", False
    end = time.monotonic() + 60
    while time.monotonic() < end:
        ready, _, _ = select.select([terminal], [], [], 1.0)
        if not ready:
            continue
        try:
            block = os.read(terminal, 65536)
        except OSError:
            break
        if not block:
            break
        shown += block
        if interrupt and not pressed and until in shown.decode(errors="replace"):
            pressed = True
            os.kill(pid, signal.SIGINT)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode(errors="replace")


def test_a_terminal_shows_a_live_line_with_a_bar_the_score_and_its_curve(
    stack: BackgroundStack, corpus_file: Path, tmp_path: Path
) -> None:
    environment = {**os.environ, "TAGSMITH_URL": stack.url, "COLUMNS": "100", "TERM": "xterm-256color"}
    environment |= {"XDG_CONFIG_HOME": str(tmp_path)}
    arguments = ["train", str(corpus_file), "--model", "cli-live", "--dev", "0.2", "--passes", "400"]
    code, shown = _in_terminal(arguments, environment, until="")
    assert code == 0, shown
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert re.search(r"pass +\d+/400  ━+.*dev F1 \d+\.\d", text), text
    assert re.search(r"[▁▂▃▄▅▆▇█]{2}", text)
    assert "\x1b[" in shown
    assert "Done in" in text
    # Without colours on request.
    code, shown = _in_terminal(["models", "show", "cli-live"], environment | {"NO_COLOR": "1"}, until="")
    assert code == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", shown)


def test_ctrl_c_detaches_and_says_how_to_return(
    stack: BackgroundStack, corpus_file: Path, tmp_path: Path, run: CommandRunner
) -> None:
    environment = {**os.environ, "TAGSMITH_URL": stack.url, "COLUMNS": "100", "TERM": "xterm-256color"}
    environment |= {"XDG_CONFIG_HOME": str(tmp_path)}
    arguments = [
        "train",
        str(corpus_file),
        "--model",
        "cli-detached",
        "--trainer",
        "sgd",
        "--passes",
        "100000",
    ]
    code, shown = _in_terminal(arguments, environment, until="pass ", interrupt=True)
    assert code == 130, shown
    found = re.search(r"tagsmith jobs cancel (\w{6})", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown))
    assert found is not None, shown
    assert json.loads(run.ok("jobs", "show", found[1], "--json"))["state"] == "running"
    run.ok("jobs", "cancel", found[1])
