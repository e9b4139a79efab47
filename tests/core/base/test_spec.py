"""Numbers of specs are the same in every process."""

import subprocess
import sys

from tagsmith.core.jobs import kinds

SPEC = {"kind": "train", "model": "m", "corpus": "crp_x"}


def test_a_subnormal_number_stays_positive() -> None:
    spec = kinds.parse_job({**SPEC, "trainer": {"kind": "mira", "C": 5e-324}})
    assert spec.model_dump()["trainer"]["C"] == sys.float_info.min


def test_it_is_a_normal_number_before_a_kernel_has_told_the_processor_to_flush_it() -> None:
    """In a new process, which has loaded no kernel."""
    code = (
        "from tagsmith.core.base.spec import Spec\n"
        "class Rate(Spec):\n    rate: float\n"
        "print(Rate(rate=5e-324).rate, Rate(rate=-1e-310).rate, Rate(rate=3e-308).rate)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    smallest = str(sys.float_info.min)
    assert done.stdout.split() == [smallest, f"-{smallest}", "3e-308"]
