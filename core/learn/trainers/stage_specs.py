"""The specs of all single trainers, which a staged trainer can use as a stage."""

from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from tagsmith.core.learn.trainers import adaptive, batch, margin, proximal, sgd
from tagsmith.core.learn.trainers.base import TrainerSpec
from tagsmith.core.learn.trainers.discovery import specs_in

#: In the order of the HTTP contract.
SINGLES: tuple[type[TrainerSpec], ...] = tuple(
    spec for family in (sgd, batch, adaptive, margin, proximal) for spec in specs_in(family)
)

if TYPE_CHECKING:
    SingleSpec = TrainerSpec
else:
    SingleSpec = Annotated[Union[SINGLES], Field(discriminator="kind")]  # noqa: UP007  # built at run time
