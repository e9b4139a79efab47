"""The hooks of pre-commit run the tools of `make check`."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_hooks_run_what_make_check_runs() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    target = makefile.partition("\ncheck:")[2].partition("\n\n")[0]
    commands = [line.split(" $(")[0] for line in re.findall(r"^\t\$\(BIN\)/(.+)$", target, re.MULTILINE)]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert len(commands) == 5
    assert re.findall(r"^ +entry: \.venv/bin/(.+)$", hooks, re.MULTILINE) == commands


def test_the_first_screen_names_the_two_commands_that_set_everything_up() -> None:
    screen = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40])
    for command in ("make demo", "make test"):
        assert re.search(rf"^{command} +# .+$", screen, re.MULTILINE)
