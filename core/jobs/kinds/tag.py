"""`tag`: label or parse a whole corpus with one version and write it in any format."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from tagsmith.core.base.errors import Fault, FaultType, Invalid
from tagsmith.core.base.names import ModelReference
from tagsmith.core.base.spec import pointer
from tagsmith.core.base.steps import mapped
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.conllu import CONLLU
from tagsmith.core.corpus.formats.conllx import CONLLX
from tagsmith.core.corpus.formats.scan import fields as word_fields
from tagsmith.core.corpus.formats.scan.words import WordLines
from tagsmith.core.corpus.formats.writing import TREE
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
#: The formats with a line of numbered fields per word.
WORD_LINES = {"conllu": CONLLU, "conllx": CONLLX}
#: The fraction of the progress for tagging; the rest is for writing.
TAGGING = 0.5


class TagSpec(JobSpec):
    """Label or parse a corpus with a version, replacing any labels or trees it has.

    The output is written in `format`, by default that of the corpus, with the `options` of that format. `decode` and
    `valid` have the same meaning as in a tagging request. They are not for parsers, whose output is `conllu`, `conllx`
    or `ndjson`.
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
    target = inputs.version(spec.model, "/model")
    parses = inputs.parses(target)
    if parses:
        _check_parsing(spec, corpus)
    try:
        _writing_options(spec, corpus, parses=parses)
    except Invalid as error:
        faults = [
            replace(each, pointer=pointer(("options", each.parameter or "")), parameter=None)
            for each in error.faults
        ]
        raise Invalid(error.message, faults, code=error.code) from None
    return Prepared(
        spec=spec.model_copy(update={"model": str(target)}), tokens=corpus.tokens, model=target.model
    )


def _check_parsing(spec: TagSpec, corpus: CorpusRow) -> None:
    """Raise Invalid for what only taggers can do, and for a format that cannot hold trees."""
    faults = []
    if spec.decode != "viterbi":
        reason = "A parser gives the most probable tree only. Leave `decode` out."
        faults.append(Fault(reason, pointer="/decode", type=FaultType.INCONSISTENT))
    if spec.valid is not None:
        reason = "A parser gives trees, which have no coding of chunks. Leave `valid` out."
        faults.append(Fault(reason, pointer="/valid", type=FaultType.INCONSISTENT))
    name = spec.format or corpus.format
    if not formats.holds_trees(name):
        known = [each for each in formats.known_formats() if formats.holds_trees(each)]
        reason = f"{name} cannot hold trees. Choose {', '.join(known[:-1])} or {known[-1]}."
        faults.append(Fault(reason, pointer="/format", type=FaultType.INCONSISTENT))
    if faults:
        raise Invalid("The tag job is not valid.", faults, code="invalid_spec")


def _run(spec: TagSpec, resources: JobResources) -> JobRun:
    target, row = resources.version(spec.model, "/model"), resources.corpus_row(spec.corpus)
    corpus = yield from resources.corpus(spec.corpus)
    yield Step("tag", 0.0, "compiling the kernels")
    warm.serving()
    path = yield from resources.model_file(target)
    tagger = Tagger.open(path, target.sha256)
    constraints = None if spec.valid is None else Constraints(valid=spec.valid)
    steps = tagged_corpus(
        tagger,
        corpus,
        posterior=spec.decode == "posterior",
        constraints=constraints,
        max_bytes=resources.settings.job_memory,
    )
    tagged = yield from mapped(steps, lambda done: Step("tag", TAGGING * done))
    path.unlink()
    parses = tagged.trees is not None
    yield Note(f"{target} has {'parsed' if parses else 'labelled'} {corpus.tokens} tokens")
    name, out = spec.format or row.format, resources.scratch / "output"
    yield from write_file(formats.write(tagged, name, _writing_options(spec, row, parses=parses)), out)
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


def _writing_options(spec: TagSpec, corpus: CorpusRow, *, parses: bool) -> Any:
    name, own, given = spec.format or corpus.format, corpus.options, spec.options
    if parses and name in WORD_LINES:
        given = {"label": TREE, **_fields(corpus.columns, WORD_LINES[name]), **given}
    return formats.writing_options(corpus.format, own, name, given)


def _fields(columns: Sequence[str], lines: WordLines) -> dict[str, Any]:
    """Return the option that names the fields of the columns, if all of them are fields."""
    found = word_fields.named_fields(columns, lines.fields)
    return {} if found is None else {"columns": found}


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
