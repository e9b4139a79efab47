"""`make bench ARGS="--data ../shared/data"`: every benchmark, one after the other."""

import subprocess
import sys

COMMANDS = ("chunking", "service")

if __name__ == "__main__":
    for name in COMMANDS:
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *sys.argv[1:]], check=True)
