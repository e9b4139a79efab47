import json
import subprocess
import sys
from pathlib import Path

from tests.core import compiled

ROOT = Path(__file__).parents[3]


def test_nothing_is_left_to_compile_in_the_first_job_of_any_trainer_and_nothing_compiled_twice() -> None:
    done = subprocess.run(
        [sys.executable, "-m", compiled.__name__], cwd=ROOT, check=True, capture_output=True, text=True
    )
    found = json.loads(done.stdout)
    assert found["warm"] > 30
    assert found["late"] == []
    assert found["twice"] == []
