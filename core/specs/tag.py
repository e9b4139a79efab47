"""`tag`: a whole corpus by one version, written in any format."""

from typing import Any, Literal

from pydantic import Field

from core.corpus.labels import LabelCoding
from core.specs.parts import CorpusId, JobLimits, ModelReference

#: As in `core.corpus.formats`, which a test compares.
FormatName = Literal["conll", "crfsuite", "ndjson", "conllu", "segmented", "brat"]


class TagSpec(JobLimits):
    """Label a corpus with a version; whatever labels it has give way.

    The output is written in `format`, by default that of the corpus, with the `options` of that format. `decode` and
    `valid` mean what they mean in a request to tag.
    """

    kind: Literal["tag"]
    model: ModelReference
    corpus: CorpusId
    format: FormatName | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    decode: Literal["viterbi", "posterior"] = "viterbi"
    valid: LabelCoding | None = None
