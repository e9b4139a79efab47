"""Checks of a posted job against the database. The objects they find cannot be deleted until the job has ended."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from tagsmith.core.base import flat_file
from tagsmith.core.base.errors import Fault, Invalid, NotFound
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.jobs.jobs import Uses
from tagsmith.core.jobs.spec import Dev, DevCorpus, Promotion
from tagsmith.core.learn.trainers import memory
from tagsmith.core.model import file
from tagsmith.core.registry import models, promotion, references
from tagsmith.core.registry.references import Target
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import corpora, lexicons
from tagsmith.core.store.corpora import CorpusRow

_MIB = 1 << 20


@dataclass(eq=False, slots=True)
class InputChecks:
    """The checks of one posted job. Each raises Invalid with a pointer to the wrong field of the spec.

    The checks record the corpora, lexicons and versions that they find. The job holds them until it has ended.
    """

    conn: Connection
    settings: Settings
    #: Whether to hold the versions that are found until the transaction ends. Without it the checks only read.
    holds: bool = True
    _corpora: list[str] = field(default_factory=list)
    _lexicons: list[str] = field(default_factory=list)
    _versions: list[Target] = field(default_factory=list)

    @property
    def uses(self) -> Uses:
        """Everything that the checks have found so far."""
        versions = [(target.model, target.version) for target in self._versions]
        return Uses(self._corpora, versions, self._lexicons)

    def corpus(self, reference: str, pointer: str = "/corpus") -> CorpusRow:
        """Find a corpus by its id, its name or `name:2`."""
        try:
            found = corpora.get(self.conn, reference)
        except NotFound as error:
            raise _unknown("corpus", error, pointer) from None
        self._corpora.append(found.id)
        return found

    def labelled(self, corpus_id: str, pointer: str = "/corpus") -> CorpusRow:
        """Find a corpus that has labels or trees."""
        found = self.corpus(corpus_id, pointer)
        if not found.labelled:
            reason = f"Corpus {found.name} has no labels. Upload it with labels: in columns, the label is the last one."
            raise Invalid(
                "The corpus has no labels.", [Fault(reason, pointer=pointer)], code="unlabelled_corpus"
            )
        return found

    def dev(self, dev: Dev | None, corpus: CorpusRow) -> None:
        """Check that a dev corpus has trees if the training corpus has, and as many columns."""
        if not isinstance(dev, DevCorpus):
            return
        found = self.labelled(dev.corpus, "/dev/corpus")
        columns, needed = len(found.columns), len(corpus.columns)
        reason = None
        if found.trees != corpus.trees:
            kinds = ("trees", "labels") if found.trees else ("labels", "trees")
            reason = f"The dev corpus has {kinds[0]}, and the training corpus has {kinds[1]}."
        elif columns != needed:
            reason = f"The dev corpus has {columns} columns before the label, and the training corpus has {needed}."
        if reason is not None:
            raise Invalid(
                "The dev corpus does not fit the training corpus.",
                [Fault(reason, pointer="/dev/corpus")],
                code="corpora_differ",
            )

    def memory(self, features: FeatureSpec, corpus: CorpusRow) -> None:
        """Check that the compiled corpus alone fits in the memory limit of a job."""
        resolved = features.resolve(corpus.columns, trees=corpus.trees)
        needed = memory.least_bytes(resolved, corpus.tokens, corpus.sentences)
        limit = self.settings.job_memory
        if needed > limit:
            reason = (
                f"The {corpus.tokens:,} tokens need at least {needed / _MIB:,.0f} MiB of memory with these features, "
                f"and jobs may use {limit / _MIB:,.0f} MiB. Use fewer features or a smaller corpus."
            )
            fault = Fault(reason, pointer="/corpus")
            raise Invalid("The corpus is too large to learn from.", [fault], code="too_large")

    def lexicons(self, features: Iterable[FeatureSpec]) -> None:
        """Check that the lexicons named by the features exist, and that each has the kind that its column needs."""
        for name, column in (pair for each in features for pair in each.lexicons.items()):
            pointer = f"/features/derived/{name}/lexicon"
            try:
                found = lexicons.get(self.conn, column.lexicon_id or "")
            except NotFound as error:
                raise _unknown("lexicon", error, pointer) from None
            column.check_lexicon(found.kind, pointer)
            self._lexicons.append(found.id)

    def version(self, reference: str, pointer: str) -> Target:
        """Return the version that a reference names now. It is held: retention does not remove it."""
        try:
            target = references.resolve(self.conn, reference, pointer)
            if self.holds:
                models.hold(self.conn, target.model, target.version)
        except NotFound as error:
            raise _unknown("model", error, pointer) from None
        self._versions.append(target)
        return target

    def parses(self, target: Target) -> bool:
        """Whether a version is a parser. Reads the beginning of its model file."""
        chunks = models.artifact(self.conn, target.model, target.version)
        try:
            return bool(flat_file.header_of(chunks, file.MAGIC)["features"]["structure"] == "tree")
        except (Invalid, ValueError, KeyError, TypeError):
            return False  # The job reports that the file cannot be read.

    def promotion(self, requested: Promotion | None) -> None:
        """Refuse a promotion whose policy needs a score that the job does not produce."""
        if requested is None:
            return
        rules = promotion.rules_for_new(self.conn, requested.model, requested.alias)
        scored_on = requested.dev.corpus if isinstance(requested.dev, DevCorpus) else None
        if rules is None or (requested.dev is not None and rules.corpus in (None, scored_on)):
            return
        needed = "a dev set" if rules.corpus is None else f"{rules.corpus} as its dev corpus"
        reason = (
            f"The policy of {requested.model} lets {requested.alias} point only to versions with a score. Train with "
            f"{needed}, or promote the version after an evaluate job."
        )
        fault = Fault(reason, pointer=requested.pointer)
        raise Invalid("The version could not be promoted.", [fault], code="promotion_unscored")


def _unknown(what: str, error: NotFound, pointer: str) -> Invalid:
    fault = Fault(error.message, pointer=pointer)
    return Invalid(f"The spec names a {what} that does not exist.", [fault], code=error.code)
