"""How large a job is, as far as its spec and its corpus tell: which queue it belongs to, and whether it fits at all."""

from core import queues, specs
from core.errors import Fault, Invalid
from core.learn import memory
from core.store.corpora import CorpusRow

#: Tokens that a quick job works through at most: about ten seconds of a common trainer.
QUICK_TOKENS = 5_000_000
_MIB = 1 << 20


def queue_of(spec: specs.JobSpec, corpus: CorpusRow) -> str:
    """The queue for a job, by the tokens it would work through in all its passes and runs."""
    return queues.QUICK if corpus.tokens * _rounds(spec) <= QUICK_TOKENS else queues.SLOW


def check_memory(spec: specs.JobSpec, corpus: CorpusRow, limit_bytes: int) -> None:
    """Raise Invalid when a job cannot but need more memory than it may have."""
    features = getattr(spec, "features", None)
    if features is None:
        return
    needed = memory.least_bytes(features.resolve(corpus.columns), corpus.tokens)
    if needed > limit_bytes:
        reason = (
            f"its {corpus.tokens:,} tokens take at least {needed / _MIB:,.0f} MiB of memory with these features, "
            f"and jobs may take {limit_bytes / _MIB:,.0f} MiB"
        )
        raise Invalid(
            "The corpus is too large to learn from.", [Fault(reason, pointer="/corpus")], code="too_large"
        )


def _rounds(spec: specs.JobSpec) -> int:
    """How often a job goes over its corpus, at most."""
    if isinstance(spec, specs.TrainSpec):
        return spec.trainer.total_passes
    if isinstance(spec, specs.CompareSpec):
        return sum(trainer.total_passes for trainer in spec.trainers)
    if isinstance(spec, specs.TuneSpec):
        return spec.folds * sum(candidate.learning.trainer.total_passes for candidate in spec.candidates)
    return len(spec.models) if isinstance(spec, specs.EvaluateSpec) else 1
