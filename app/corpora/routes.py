"""Routes of corpora."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from app.corpora import exports, schemas, service
from app.corpora.parameters import OPTIONS
from app.corpora.upload import Declared
from app.deps import CallerDep, DatabaseDep, RuntimeDep
from app.params import DEFAULT_LIMIT, CorpusId, Cursor, Limit, Listing
from core.corpus import formats
from core.corpus.report import CorpusReport
from core.specs import REFERENCE_PATTERN
from core.store.corpora import CorpusRow
from core.store.paging import Page

router = APIRouter(prefix="/corpora", tags=["corpora"])

#: A name is for people to read: any text without control characters.
CorpusName = Annotated[str | None, Query(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
_FORMATS = list(formats.known_formats())
#: What a corpus can be written as, for the document.
_CONTENT = {
    formats.media_type(name).partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}
    for name in _FORMATS
}
Format = Annotated[
    str,
    Query(
        max_length=32,
        description=f"How the text is written: {', '.join(_FORMATS)}.",
        json_schema_extra={"enum": _FORMATS},
    ),
]

ExportFormat = Annotated[
    str | None,
    Query(
        max_length=32,
        description="As for uploads; the text as it came if not given.",
        json_schema_extra={"enum": _FORMATS},
    ),
]
TaggedBy = Annotated[
    str | None,
    Query(
        max_length=200,
        description="A model such as `chunker`, `chunker@champion` or `chunker:3`, to tag with.",
        json_schema_extra={"pattern": REFERENCE_PATTERN},
    ),
]

UPLOAD_BODY = {
    "requestBody": {
        "required": True,
        "description": "The corpus, plain or with Content-Encoding gzip or zstd; or multipart with one file.",
        "content": {
            "text/plain": {"schema": {"type": "string"}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            },
        },
    }
}


@router.post("", status_code=201, response_model=schemas.Corpus, openapi_extra={**UPLOAD_BODY, **OPTIONS})
async def upload(
    request: Request,
    response: Response,
    runtime: RuntimeDep,
    caller: CallerDep,
    name: CorpusName = None,
    format: Format = "conll",  # noqa: A002  # the contract's name for it
) -> CorpusRow:
    """Store a corpus. Faults are reported with line numbers, up to 100, and then nothing is stored."""
    headers = request.headers
    declared = Declared(
        format,
        _options(request, "name", "format"),
        headers.get("content-type", ""),
        headers.get("content-encoding"),
    )
    corpus = await service.create(
        request.stream(),
        declared,
        name,
        settings=runtime.settings,
        database=runtime.database,
        threads=runtime.upload_threads,
        caller=caller,
    )
    response.headers["Location"] = service.location(corpus)
    return corpus


@router.get("", response_model=Listing[schemas.Corpus])
def list_corpora(
    database: DatabaseDep, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Page[CorpusRow]:
    """List corpora, newest first."""
    return service.page(database, limit, cursor)


@router.get("/{corpus_id}", response_model=schemas.Corpus)
def get_corpus(corpus_id: CorpusId, database: DatabaseDep) -> CorpusRow:
    """Give one corpus."""
    return service.get(database, corpus_id)


@router.get("/{corpus_id}/report", response_class=JSONResponse, responses={200: {"model": CorpusReport}})
def get_report(corpus_id: CorpusId, database: DatabaseDep) -> JSONResponse:
    """Give label counts, lengths, faults of the label coding and duplicates, as they were counted at upload."""
    return JSONResponse(service.get(database, corpus_id).report)


@router.get(
    "/{corpus_id}/content",
    response_class=StreamingResponse,
    openapi_extra={**OPTIONS},
    responses={200: {"content": _CONTENT}},
)
async def get_content(
    corpus_id: CorpusId,
    request: Request,
    runtime: RuntimeDep,
    format: ExportFormat = None,  # noqa: A002  # the contract's name for it
    model: TaggedBy = None,
) -> StreamingResponse:
    """Give the text as it was uploaded, decompressed; or, with a format, written anew in that, tagged by a model."""
    asked = exports.Export(format, model, _options(request, "format", "model"))
    export = await exports.export(runtime, corpus_id, asked)
    return StreamingResponse(export.chunks, media_type=export.media_type, headers=export.headers)


@router.delete("/{corpus_id}", status_code=204)
def delete_corpus(corpus_id: CorpusId, database: DatabaseDep, caller: CallerDep) -> None:
    """Remove a corpus. One that a job still needs, or a policy names, stays (409)."""
    service.delete(database, corpus_id, caller)


def _options(request: Request, *others: str) -> dict[str, str]:
    """What the query says about the format: all but the parameters that the route has itself."""
    return {key: value for key, value in request.query_params.items() if key not in others}
