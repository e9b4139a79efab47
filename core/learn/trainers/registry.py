"""All trainers by the `kind` of their spec. A trainer is one file in a family package; `discovery` finds it."""

from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field, TypeAdapter

from tagsmith.core.learn.trainers import staged
from tagsmith.core.learn.trainers.base import TrainerSpec
from tagsmith.core.learn.trainers.discovery import specs_in
from tagsmith.core.learn.trainers.stage_specs import SINGLES

#: In the order of the HTTP contract.
SPECS: tuple[type[TrainerSpec], ...] = (*SINGLES, *specs_in(staged))

#: The union of all trainer specs, discriminated by `kind`.
if TYPE_CHECKING:
    AnyTrainerSpec = TrainerSpec
else:
    AnyTrainerSpec = Annotated[Union[SPECS], Field(discriminator="kind")]  # noqa: UP007  # built at run time

_ANY: TypeAdapter[TrainerSpec] = TypeAdapter(AnyTrainerSpec)

#: For each kind, a short run that compiles its kernels. Kinds that share kernels share the run.
EXAMPLES: dict[type[TrainerSpec], TrainerSpec] = {spec: _ANY.validate_python(spec.example) for spec in SPECS}
