"""The specs of every trainer that learns by itself: what a trainer made of two can have for a stage."""

from core.learn.adf import AdfSpec, MadfSpec
from core.learn.asgd import AsgdSpec
from core.learn.confidence import ArowSpec, CwSpec
from core.learn.dca import DcaSpec
from core.learn.lbfgs import LbfgsSpec, OwlqnSpec
from core.learn.passive_aggressive import MiraSpec, PassiveAggressiveSpec
from core.learn.perceptron import AveragedPerceptronSpec, PerceptronSpec
from core.learn.prox_grad import ProxGradSpec
from core.learn.sgd import SgdSpec
from core.learn.sgd_l1 import SgdL1Spec

SingleSpec = (
    SgdSpec
    | AsgdSpec
    | SgdL1Spec
    | LbfgsSpec
    | OwlqnSpec
    | AdfSpec
    | MadfSpec
    | PerceptronSpec
    | AveragedPerceptronSpec
    | PassiveAggressiveSpec
    | MiraSpec
    | DcaSpec
    | CwSpec
    | ArowSpec
    | ProxGradSpec
)
