"""Every trainer by its spec. A new trainer is one file and one line in each of these."""

from core.learn.sgd_l1 import SgdL1, SgdL1Spec
from core.learn.trainer import Trainer

#: The union of all trainer specs, told apart by `kind`.
AnyTrainerSpec = SgdL1Spec

#: One short run of each trainer: together they compile every kernel of training.
EXAMPLES: tuple[AnyTrainerSpec, ...] = (SgdL1Spec(passes=1),)


def trainer_of(spec: AnyTrainerSpec) -> Trainer:
    """Make the trainer that a spec asks for."""
    return SgdL1(spec)
