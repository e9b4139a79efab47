"""`tag`: label a whole corpus with one version and write it in any format."""

from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.names import ModelReference
from tagsmith.core.base.spec import pointer
from tagsmith.core.base.steps import mapped
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.labels.codings import LabelCoding
from tagsmith.core.jobs.input_checks import InputChecks
from tagsmith.core.jobs.kind import Example, JobKind, Prepared
from tagsmith.core.jobs.output_file import FileResult, WrittenFile, output_of
from tagsmith.core.jobs.resources import JobResources, write_file
from tagsmith.core.jobs.runner_interface import JobRun, Note, Step
from tagsmith.core.jobs.spec import JobSpec
from tagsmith.core.model.constraints import Constraints
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline import warm
from tagsmith.core.pipeline.evaluation import tagged_corpus
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.ids import CorpusReference

#: The formats of `tagsmith.core.corpus.formats.registry`; a test checks that the lists agree.
FormatName = Literal["conll", "crfsuite", "ndjson", "conllu", "conllx", "segmented", "brat", "spans"]
#: The fraction of the progress for tagging; the rest is for writing.
TAGGING = 0.5


class TagSpec(JobSpec):
    """Label a corpus with a version, replacing any labels it has.

    The output is written in `format`, by default that of the corpus, with the `options` of that format. `decode` and
    `valid` have the same meaning as in a tagging request.
    """

    kind: Literal["tag"]
    model: ModelReference
    corpus: CorpusReference
    format: FormatName | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    decode: Literal["viterbi", "posterior"] = "viterbi"
    valid: LabelCoding | None = None


class TaggedCorpus(FileResult):
    """The output file and the version that labelled it."""


def _prepare(spec: TagSpec, inputs: InputChecks) -> Prepared:
    corpus = inputs.corpus(spec.corpus)
    try:
        _writing_options(spec, corpus)
    except Invalid as error:
        faults = [
            replace(each, pointer=pointer(("options", each.parameter or "")), parameter=None)
            for each in error.faults
        ]
        raise Invalid(error.message, faults, code=error.code) from None
    target = inputs.version(spec.model, "/model")
    return Prepared(
        spec=spec.model_copy(update={"model": str(target)}), tokens=corpus.tokens, model=target.model
    )


def _run(spec: TagSpec, resources: JobResources) -> JobRun:
    target, row = resources.version(spec.model, "/model"), resources.corpus_row(spec.corpus)
    corpus = yield from resources.corpus(spec.corpus)
    yield Step("tag", 0.0, "compiling the kernels")
    warm.serving()
    path = yield from resources.model_file(target)
    tagger = Tagger.open(path, target.sha256)
    constraints = None if spec.valid is None else Constraints(valid=spec.valid)
    steps = tagged_corpus(tagger, corpus, posterior=spec.decode == "posterior", constraints=constraints)
    tagged = yield from mapped(steps, lambda done: Step("tag", TAGGING * done))
    path.unlink()
    yield Note(f"{target} has labelled {corpus.tokens} tokens")
    name, out = spec.format or row.format, resources.scratch / "output"
    yield from write_file(formats.write(tagged, name, _writing_options(spec, row)), out)
    result = {
        "model": target.model,
        "version": target.version,
        "corpus": row.id,
        "format": name,
        "media_type": formats.media_type(name),
        "sentences": corpus.sentences,
        "tokens": corpus.tokens,
    }
    return WrittenFile(resources.job.id, out, TaggedCorpus, result)


def _writing_options(spec: TagSpec, corpus: CorpusRow) -> Any:
    return formats.writing_options(corpus.format, corpus.options, spec.format or corpus.format, spec.options)


KIND = JobKind(
    spec=TagSpec,
    result=TaggedCorpus,
    examples={
        "tag": Example(
            "Tag a corpus and write it as JSON lines",
            {"kind": "tag", "model": "chunker@champion", "corpus": "crp_01hzy3m9k4t7", "format": "ndjson"},
        )
    },
    prepare=_prepare,
    run=_run,
    output=output_of,
    position=50,
)
