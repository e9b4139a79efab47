"""Train as a `train` job does, without the job around it."""

from collections.abc import Generator
from typing import Any

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.jobs.spec import JobSpec
from tagsmith.core.learn.run.progress import Progress
from tagsmith.core.pipeline import train as pipeline
from tagsmith.core.pipeline.train import TrainResult


def train(
    spec: JobSpec, corpus: Corpus, dev: Corpus | None = None, **more: Any
) -> Generator[Progress, None, TrainResult]:
    """Train by the spec of a `train` job; `dev` is the corpus that its dev set names."""
    assert isinstance(spec, TrainSpec)
    if "init" in more:
        more["init"] = pipeline.Start(more["init"], str(spec.init))
    return pipeline.train(spec, corpus, spec.dev_of(dev), **more)
