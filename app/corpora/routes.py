"""Routes of corpora."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from tagsmith import wire
from tagsmith.app.corpora import exports, service
from tagsmith.app.corpora.parameters import OPTIONS
from tagsmith.app.corpora.sentences import SentenceQuery
from tagsmith.app.deps import CallerDep, DatabaseDep, RuntimeDep
from tagsmith.app.http.params import DEFAULT_LIMIT, MAX_LIMIT, CorpusId, Cursor, Force, Limit
from tagsmith.app.http.policy import BodyLimit, policy
from tagsmith.app.http.uploads import UPLOAD_BODY, Declared, UploadName
from tagsmith.core.base.names import REFERENCE_PATTERN
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.keys import Scope
from tagsmith.core.store.paging import Page

router = APIRouter(prefix="/corpora", tags=["corpora"])

_FORMATS = list(formats.known_formats())
#: Media types of exports, for the OpenAPI document.
_CONTENT = {
    formats.media_type(name).partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}
    for name in _FORMATS
}
Format = Annotated[
    str,
    Query(
        max_length=32,
        description=f"Format of the text: {', '.join(_FORMATS)}. `auto` recognises it by the content.",
        json_schema_extra={"enum": [formats.AUTO, *_FORMATS]},
    ),
]

NameFilter = Annotated[str | None, Query(max_length=200, description="Only the uploads under this name.")]
ExportFormat = Annotated[
    str | None,
    Query(
        max_length=32,
        description="As for uploads; without it, the text as it was uploaded.",
        json_schema_extra={"enum": _FORMATS},
    ),
]
Offset = Annotated[int, Query(ge=0, le=2**40, description="Number of the first sentence, from 0.")]
SentenceLimit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Sentences per page.")]
SentenceLabel = Annotated[
    str | None,
    Query(max_length=1000, description="Only sentences with this label, type of span or relation."),
]
Faulty = Annotated[
    bool, Query(description="Only sentences with labels that break their coding, as in the report.")
]
TaggedBy = Annotated[
    str | None,
    Query(
        max_length=200,
        description="A model such as `chunker`, `chunker@champion` or `chunker:3`, to tag with.",
        json_schema_extra={"pattern": REFERENCE_PATTERN},
    ),
]


@router.post("", status_code=201, response_model=wire.CorpusInfo, openapi_extra={**UPLOAD_BODY, **OPTIONS})
@policy(Scope.TRAIN, body=BodyLimit.UPLOAD, idempotent=True, audit=True)
async def upload(
    request: Request,
    runtime: RuntimeDep,
    caller: CallerDep,
    name: UploadName = None,
    format: Format = formats.AUTO,  # noqa: A002  # the contract's name for it
) -> Response:
    """Store a corpus. A corpus with faults is not stored; up to 100 faults are reported with line numbers."""
    declared = Declared.of(request, format, _options(request, "name", "format"))
    made = await service.create(request.stream(), declared, name, runtime, caller)
    return made.response()


@router.post("/inspect", openapi_extra={**UPLOAD_BODY, **OPTIONS})
@policy(Scope.TRAIN, body=BodyLimit.UPLOAD, audit=False)
async def inspect(
    request: Request,
    runtime: RuntimeDep,
    name: UploadName = None,
    format: Format = formats.AUTO,  # noqa: A002  # the contract's name for it
) -> wire.CorpusInspection:
    """Describe what an upload of the body would store. Nothing is stored. Faults are reported as by an upload."""
    del name  # accepted, so that the parameters are those of an upload
    declared = Declared.of(request, format, _options(request, "name", "format"))
    return await service.inspect(request.stream(), declared, runtime)


@router.get("", response_model=wire.Listing[wire.CorpusInfo])
@policy(Scope.READ, etag=True)
def list_corpora(
    database: DatabaseDep, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None, name: NameFilter = None
) -> Page[CorpusRow]:
    """List corpora, newest first."""
    return service.list_page(database, limit, cursor, name)


@router.get("/{corpus_id}", response_model=wire.CorpusInfo)
@policy(Scope.READ, etag=True)
def get_corpus(corpus_id: CorpusId, database: DatabaseDep) -> CorpusRow:
    """Return one corpus."""
    return service.get(database, corpus_id)


@router.get(
    "/{corpus_id}/report", response_class=JSONResponse, responses={200: {"model": wire.CorpusStatistics}}
)
@policy(Scope.READ, etag=True)
def get_report(corpus_id: CorpusId, database: DatabaseDep) -> JSONResponse:
    """Return label counts, lengths, faults of the label coding and duplicates, counted at upload."""
    return JSONResponse(service.get(database, corpus_id).report)


@router.get("/{corpus_id}/sentences", response_model=wire.Listing[wire.CorpusSentence])
@policy(Scope.READ, etag=True)
async def list_sentences(
    corpus_id: CorpusId,
    runtime: RuntimeDep,
    offset: Offset = 0,
    limit: SentenceLimit = 20,
    label: SentenceLabel = None,
    faulty: Faulty = False,
) -> Page[wire.CorpusSentence]:
    """List sentences in the order of the corpus. `next_cursor` is the `offset` of the next page."""
    return await service.sentence_page(runtime, corpus_id, SentenceQuery(offset, limit, label, faulty))


@router.get(
    "/{corpus_id}/content",
    response_class=StreamingResponse,
    openapi_extra={**OPTIONS},
    responses={200: {"content": _CONTENT}},
)
@policy(Scope.READ, etag=True)
async def get_content(
    corpus_id: CorpusId,
    request: Request,
    runtime: RuntimeDep,
    format: ExportFormat = None,  # noqa: A002  # the contract's name for it
    model: TaggedBy = None,
) -> StreamingResponse:
    """Return the text as it was uploaded, decompressed. `format` converts it; `model` tags it."""
    asked = exports.Export(format, model, _options(request, "format", "model"))
    export = await service.export(runtime, corpus_id, asked)
    return StreamingResponse(export.chunks, media_type=export.media_type, headers=export.headers)


@router.delete("/{corpus_id}", status_code=204)
@policy(Scope.TRAIN, audit=True)
def delete_corpus(
    corpus_id: CorpusId, database: DatabaseDep, caller: CallerDep, force: Force = False
) -> None:
    """Delete a corpus. 409 while an unfinished job needs it or a policy names it.

    Also 409 if a version that an alias points to was trained on it, unless `force` is set. Of a name, the newest upload
    is deleted.
    """
    service.delete(database, corpus_id, caller, force=force)


def _options(request: Request, *others: str) -> dict[str, str]:
    """Return the options of the format: all query parameters except those of the route."""
    return {key: value for key, value in request.query_params.items() if key not in others}
