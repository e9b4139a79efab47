"""`rank`: list the sentences of a corpus that a version is least sure about, to be labelled next."""

from typing import Annotated, Any, Literal

from pydantic import Field

from tagsmith.core.base.names import ModelReference
from tagsmith.core.base.steps import mapped
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.jobs.input_checks import InputChecks
from tagsmith.core.jobs.kind import Example, JobKind, Prepared
from tagsmith.core.jobs.output_file import FileResult, WrittenFile, output_of
from tagsmith.core.jobs.resources import JobResources, write_file
from tagsmith.core.jobs.runner_interface import JobRun, Note, Step
from tagsmith.core.jobs.spec import JobSpec
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline import warm
from tagsmith.core.pipeline.ranking import (
    Measure,
    RankPlan,
    check_measure,
    fields_of,
    format_of,
    rank,
    written,
)
from tagsmith.core.store.ids import CorpusReference

#: More sentences than a team labels before it trains again.
MAX_TOP = 100_000


class RankSpec(JobSpec):
    """List the sentences that a version is least sure about, with its labels, to be corrected and uploaded again.

    Labels of the corpus are not used. Equal sentences are listed once. The output is NDJSON: `tokens`, `tags`, and the
    `index` (from 0) and the `score` of the sentence, which uploads ignore. A parser knows the measure `probability`
    only, and its output is CoNLL-U with `index` and `score` as comments.
    """

    kind: Literal["rank"]
    model: ModelReference
    corpus: CorpusReference
    by: Annotated[
        Measure,
        Field(
            description="The measure, which is the `score` of a line. `probability`: the logarithm of the probability "
            "of the best labelling or tree, lowest first. `margin`: that logarithm minus the one of the second best "
            "labelling, lowest first. `entropy`: the entropy of the labelling, in nats, highest first."
        ),
    ] = "probability"
    per_token: Annotated[
        bool,
        Field(
            description="Divide logarithms of probabilities and entropies by the number of tokens. Otherwise long "
            "sentences come first. Margins are never divided."
        ),
    ] = True
    top: Annotated[int, Field(ge=1, le=MAX_TOP, description="The most sentences to list.")] = 500
    diverse: Annotated[
        bool,
        Field(
            description="Leave out near copies: sentences of which at least half of the pairs of neighbouring tokens "
            "occur in one sentence that is listed before."
        ),
    ] = False

    @property
    def plan(self) -> RankPlan:
        """Which sentences to list."""
        return RankPlan(by=self.by, top=self.top, diverse=self.diverse, per_token=self.per_token)


class RankedCorpus(FileResult):
    """The output file and the version that is least sure about its sentences."""

    by: Measure
    #: Sentences of the corpus that differ from all before them.
    distinct: int
    #: False if the version was not trained to give probabilities; else left out.
    calibrated: bool | None = None


def _prepare(spec: RankSpec, inputs: InputChecks) -> Prepared:
    corpus = inputs.corpus(spec.corpus)
    target = inputs.version(spec.model, "/model")
    if inputs.parses(target):
        check_measure(spec.by)
        fields_of(corpus.columns)
    return Prepared(
        spec=spec.model_copy(update={"model": str(target)}), tokens=corpus.tokens, model=target.model
    )


def _run(spec: RankSpec, resources: JobResources) -> JobRun:
    target, row = resources.version(spec.model, "/model"), resources.corpus_row(spec.corpus)
    corpus = yield from resources.corpus(spec.corpus)
    yield Step("rank", 0.0, "compiling the kernels")
    warm.ranking()
    path = yield from resources.model_file(target)
    tagger = Tagger.open(path, target.sha256)
    steps = rank(tagger, corpus, spec.plan, resources.settings.job_memory)
    ranking = yield from mapped(steps, lambda done: Step("rank", done))
    path.unlink()
    listed = ranking.tagged
    yield Note(f"{target} is least sure about {listed.sentences} of {ranking.distinct} distinct sentences")
    name, out = format_of(parses=listed.trees is not None), resources.scratch / "output"
    yield from write_file(written(ranking), out)
    result: dict[str, Any] = {
        "model": target.model,
        "version": target.version,
        "corpus": row.id,
        "format": name,
        "media_type": formats.media_type(name),
        "sentences": listed.sentences,
        "tokens": listed.tokens,
        "by": spec.by,
        "distinct": ranking.distinct,
    }
    if tagger.model.usage.calibrated is False:
        result["calibrated"] = False
    return WrittenFile(resources.job.id, out, RankedCorpus, result)


KIND = JobKind(
    spec=RankSpec,
    result=RankedCorpus,
    examples={
        "rank": Example(
            "List the 500 sentences that a version is least sure about, without near copies",
            {
                "kind": "rank",
                "model": "chunker@champion",
                "corpus": "crp_01hzy3m9k4t7",
                "by": "margin",
                "top": 500,
                "diverse": True,
            },
        )
    },
    prepare=_prepare,
    run=_run,
    output=output_of,
    position=60,
)
