"""Every trainer by its spec. A new trainer is one file and one line in each of these."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from core.learn.adf import Adaptive, AdfSpec, MadfSpec
from core.learn.asgd import Asgd, AsgdSpec
from core.learn.confidence import ArowSpec, Confidence, CwSpec
from core.learn.dca import Dca, DcaSpec
from core.learn.kinds import SingleSpec
from core.learn.lbfgs import LbfgsSpec, OwlqnSpec, QuasiNewton
from core.learn.passive_aggressive import MiraSpec, PassiveAggressive, PassiveAggressiveSpec
from core.learn.perceptron import AveragedPerceptronSpec, Perceptron, PerceptronSpec
from core.learn.prox_grad import ProxGrad, ProxGradSpec
from core.learn.sgd import Sgd, SgdSpec
from core.learn.sgd_l1 import SgdL1, SgdL1Spec
from core.learn.sparseptron import Sparseptron, SparseptronSpec
from core.learn.trainer import Trainer, TrainerSpec
from core.learn.two_stage import TwoStage, TwoStageSpec

#: The union of all trainer specs, told apart by `kind`.
AnyTrainerSpec = Annotated[SingleSpec | TwoStageSpec | SparseptronSpec, Field(discriminator="kind")]

#: How each spec becomes a trainer, given the threads it may use.
_MAKERS: dict[type[TrainerSpec], Callable[[Any, int], Trainer]] = {
    SgdSpec: lambda spec, _: Sgd(spec),
    AsgdSpec: lambda spec, _: Asgd(spec),
    SgdL1Spec: lambda spec, _: SgdL1(spec),
    LbfgsSpec: QuasiNewton,
    OwlqnSpec: QuasiNewton,
    TwoStageSpec: TwoStage,
    AdfSpec: lambda spec, _: Adaptive(spec),
    MadfSpec: lambda spec, _: Adaptive(spec),
    PerceptronSpec: lambda spec, _: Perceptron(spec),
    AveragedPerceptronSpec: lambda spec, _: Perceptron(spec),
    PassiveAggressiveSpec: lambda spec, _: PassiveAggressive(spec),
    MiraSpec: lambda spec, _: PassiveAggressive(spec),
    DcaSpec: lambda spec, _: Dca(spec),
    CwSpec: lambda spec, _: Confidence(spec),
    ArowSpec: lambda spec, _: Confidence(spec),
    ProxGradSpec: lambda spec, _: ProxGrad(spec),
    SparseptronSpec: lambda spec, threads: Sparseptron(spec, trainer_of(spec.refit, threads)),
}

_BATCH = TwoStageSpec(passes=2, first=SgdL1Spec(passes=1, line_search="heuristic"))
_MARGIN, _ADAPTIVE = AveragedPerceptronSpec(passes=1), AdfSpec(passes=1)

#: A short run for each kind that compiles all its kernels. Kinds that share kernels share the run.
EXAMPLES: dict[type[TrainerSpec], TrainerSpec] = {
    SgdSpec: SgdL1Spec(passes=1),
    AsgdSpec: SgdL1Spec(passes=1),
    SgdL1Spec: SgdL1Spec(passes=1),
    LbfgsSpec: LbfgsSpec(passes=3),
    OwlqnSpec: _BATCH,
    TwoStageSpec: _BATCH,
    AdfSpec: _ADAPTIVE,
    MadfSpec: _ADAPTIVE,
    PerceptronSpec: _MARGIN,
    AveragedPerceptronSpec: _MARGIN,
    PassiveAggressiveSpec: _MARGIN,
    MiraSpec: _MARGIN,
    DcaSpec: _MARGIN,
    CwSpec: _MARGIN,
    ArowSpec: _MARGIN,
    # Groups that take all kernels.
    ProxGradSpec: ProxGradSpec(groups="label", passes=1),
    SparseptronSpec: SparseptronSpec(groups="label", passes=1, refit=_MARGIN),
}


def trainer_of(spec: TrainerSpec, threads: int) -> Trainer:
    """Make the trainer that a spec asks for."""
    return _MAKERS[type(spec)](spec, threads)


def uses_threads(spec: TrainerSpec) -> bool:
    """Whether the trainer can work on more than one thread: those that see the whole corpus at each step."""
    stage = spec.refit if isinstance(spec, SparseptronSpec) else spec
    return isinstance(stage, LbfgsSpec | OwlqnSpec | TwoStageSpec)
