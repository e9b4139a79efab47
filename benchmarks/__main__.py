"""`make bench ARGS="--data ../shared/data"` runs all benchmarks in sequence; `--long` includes the long ones."""

import subprocess
import sys

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("lanes",),
    ("chunking",),
    ("online",),
    ("service",),
    ("tagging",),
    ("quasi_newton",),
    ("tsuruoka",),
    ("features",),
    ("readers",),
    ("command_line",),
    ("imports",),
    ("control",),
    ("rollout",),
    ("zhou", "--part", "two-stage", "--rounds", "1"),
)
#: More than ten minutes each.
LONG: tuple[tuple[str, ...], ...] = (
    ("load",),
    ("rich_edges",),
    ("sun",),
    ("he_wang",),
    ("presets",),
    ("segmentation",),
    ("sentiment",),
    ("martins",),
    ("zhou", "--part", "grid"),
    ("zhou", "--corpus", "pku"),
)

if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument != "--long"]
    for name, *own in COMMANDS + (LONG if "--long" in sys.argv else ()):
        print(f"== {name} {' '.join(own)}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *own, *given], check=True)
