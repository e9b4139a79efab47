"""Routes that list trainers and presets."""

from fastapi import APIRouter

from tagsmith import wire
from tagsmith.app.http.policy import policy
from tagsmith.core.features.presets import PresetDescription, presets
from tagsmith.core.learn.trainers.catalogue import TrainerDescription, trainers
from tagsmith.core.store.keys import Scope
from tagsmith.core.store.paging import Page

router = APIRouter(tags=["trainers and presets"])


@router.get("/trainers", response_model=wire.Listing[wire.TrainerInfo])
@policy(Scope.READ, etag=True)
def list_trainers() -> Page[TrainerDescription]:
    """List all trainers with their fields and defaults."""
    return Page(list(trainers()), None)


@router.get("/presets", response_model=wire.Listing[wire.PresetInfo])
@policy(Scope.READ, etag=True)
def list_presets() -> Page[PresetDescription]:
    """List the presets of features."""
    return Page(list(presets()), None)
