"""Routes of lexicons."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from app.corpora.routes import UPLOAD_BODY, CorpusName
from app.corpora.upload import Declared
from app.deps import CallerDep, DatabaseDep, RuntimeDep
from app.lexicons import schemas, service
from app.params import DEFAULT_LIMIT, Cursor, LexiconId, Limit, Listing
from core.lexicon.lexicon import KINDS
from core.store.lexicons import LexiconRow
from core.store.paging import Page

router = APIRouter(prefix="/lexicons", tags=["lexicons"])

Kind = Annotated[
    str,
    Query(
        max_length=32,
        description="`words`, `typed`, `categories`, `clusters` or `text`.",
        examples=["words"],
        json_schema_extra={"enum": list(KINDS)},
    ),
]


@router.post(
    "",
    status_code=201,
    response_model=schemas.Lexicon,
    responses={200: {"model": schemas.Lexicon, "description": "It was there already."}},
    openapi_extra=UPLOAD_BODY,
)
async def upload(
    request: Request,
    response: Response,
    runtime: RuntimeDep,
    caller: CallerDep,
    kind: Kind = "words",
    name: CorpusName = None,
) -> LexiconRow:
    """Store a lexicon. The same one again is answered with 200 and what is there; faults have line numbers."""
    headers = request.headers
    declared = Declared(kind, {}, headers.get("content-type", ""), headers.get("content-encoding"))
    lexicon, new = await service.create(
        request.stream(),
        declared,
        name,
        settings=runtime.settings,
        database=runtime.database,
        threads=runtime.upload_threads,
        caller=caller,
    )
    response.status_code = service.status(new=new)
    response.headers["Location"] = service.location(lexicon)
    return lexicon


@router.get("", response_model=Listing[schemas.Lexicon])
def list_lexicons(
    database: DatabaseDep, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Page[LexiconRow]:
    """List lexicons, newest first."""
    return service.page(database, limit, cursor)


@router.get("/{lexicon_id}", response_model=schemas.Lexicon)
def get_lexicon(lexicon_id: LexiconId, database: DatabaseDep) -> LexiconRow:
    """Give one lexicon."""
    return service.get(database, lexicon_id)


@router.get(
    "/{lexicon_id}/content",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def get_content(lexicon_id: LexiconId, database: DatabaseDep) -> StreamingResponse:
    """Give the text as it was uploaded, decompressed."""
    lexicon, chunks = service.content(database, lexicon_id)
    headers = {"Content-Length": str(lexicon.size_bytes), "ETag": f'"{lexicon.sha256}"'}
    return StreamingResponse(chunks, media_type="text/plain; charset=utf-8", headers=headers)


@router.delete("/{lexicon_id}", status_code=204)
def delete_lexicon(lexicon_id: LexiconId, database: DatabaseDep, caller: CallerDep) -> None:
    """Remove a lexicon. One that a job still needs stays (409); versions made with it go on without it."""
    service.delete(database, lexicon_id, caller)
