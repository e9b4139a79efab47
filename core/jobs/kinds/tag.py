"""`tag`: label a whole corpus with one version and write it in any format."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.names import ModelReference
from tagsmith.core.base.spec import pointer
from tagsmith.core.base.steps import mapped
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.labels.codings import LabelCoding
from tagsmith.core.jobs import jobs
from tagsmith.core.jobs.input_checks import InputChecks
from tagsmith.core.jobs.kind import Example, JobKind, Output, Prepared, Result, Stored
from tagsmith.core.jobs.resources import JobResources, chunks_of, write_file
from tagsmith.core.jobs.runner_interface import JobRun, Note, Step
from tagsmith.core.jobs.spec import JobSpec
from tagsmith.core.model.constraints import Constraints
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline import warm
from tagsmith.core.pipeline.evaluation import tagged_corpus
from tagsmith.core.store import blobs
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.ids import CorpusReference

#: The formats of `tagsmith.core.corpus.formats.registry`; a test checks that the lists agree.
FormatName = Literal["conll", "crfsuite", "ndjson", "conllu", "segmented", "brat", "spans"]
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


class TaggedCorpus(Result):
    """The output file and the version that labelled it."""

    model: str
    version: int
    corpus: str
    format: str
    media_type: str
    sentences: int
    tokens: int
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class _Written:
    """A file to be stored as the output of the job."""

    job_id: str
    path: Path
    #: The result, without the size and digest of the output.
    result: dict[str, Any]

    def store(self, conn: Connection) -> dict[str, Any]:
        blob = blobs.write(conn, jobs.output_id(self.job_id), chunks_of(self.path))
        return TaggedCorpus(**self.result, size_bytes=blob.size_bytes, sha256=blob.sha256).stored()


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
    return _Written(resources.job.id, out, result)


def _writing_options(spec: TagSpec, corpus: CorpusRow) -> Any:
    return formats.writing_options(corpus.format, corpus.options, spec.format or corpus.format, spec.options)


def _output(result: Stored) -> Output:
    return Output(
        media_type=result["media_type"],
        extension=result["format"],
        size_bytes=result["size_bytes"],
        sha256=result["sha256"],
        made_by=f"{result['model']}:{result['version']}",
    )


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
    output=_output,
    position=50,
)
