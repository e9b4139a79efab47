"""Routes of lexicons."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from tagsmith import wire
from tagsmith.app.deps import CallerDep, DatabaseDep, RuntimeDep
from tagsmith.app.http.params import DEFAULT_LIMIT, Cursor, LexiconId, Limit
from tagsmith.app.http.policy import BodyLimit, policy
from tagsmith.app.http.uploads import UPLOAD_BODY, Declared, UploadName
from tagsmith.app.lexicons import service
from tagsmith.core.features.lexicon.lexicon import KINDS
from tagsmith.core.store.keys import Scope
from tagsmith.core.store.lexicons import LexiconRow
from tagsmith.core.store.paging import Page

router = APIRouter(prefix="/lexicons", tags=["lexicons"])

Kind = Annotated[
    str,
    Query(
        max_length=32,
        description=(
            "Content of a line. `words`: an entry. `typed`: a type, a tab, an entry. `categories`: a category and its "
            "words, separated by blanks. `clusters`: bits, a tab, a word. `text`: plain text."
        ),
        examples=["words"],
        json_schema_extra={"enum": list(KINDS)},
    ),
]


@router.post(
    "",
    status_code=201,
    response_model=wire.LexiconInfo,
    responses={200: {"model": wire.LexiconInfo, "description": "The lexicon already exists."}},
    openapi_extra=UPLOAD_BODY,
)
@policy(Scope.TRAIN, body=BodyLimit.UPLOAD, idempotent=True, audit=True)
async def upload(
    request: Request,
    runtime: RuntimeDep,
    caller: CallerDep,
    kind: Kind = "words",
    name: UploadName = None,
) -> Response:
    """Store a lexicon. 200 with the stored lexicon if it already exists. Faults are reported with line numbers."""
    made = await service.create(request.stream(), Declared.of(request, kind, {}), name, runtime, caller)
    return made.response()


@router.get("", response_model=wire.Listing[wire.LexiconInfo])
@policy(Scope.READ, etag=True)
def list_lexicons(
    database: DatabaseDep, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Page[LexiconRow]:
    """List lexicons, newest first."""
    return service.list_page(database, limit, cursor)


@router.get("/{lexicon_id}", response_model=wire.LexiconInfo)
@policy(Scope.READ, etag=True)
def get_lexicon(lexicon_id: LexiconId, database: DatabaseDep) -> LexiconRow:
    """Return one lexicon."""
    return service.get(database, lexicon_id)


@router.get(
    "/{lexicon_id}/content",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
@policy(Scope.READ, etag=True)
def get_content(lexicon_id: LexiconId, database: DatabaseDep) -> StreamingResponse:
    """Return the text as it was uploaded, decompressed."""
    lexicon, chunks = service.open_content(database, lexicon_id)
    headers = {"Content-Length": str(lexicon.size_bytes), "ETag": f'"{lexicon.sha256}"'}
    return StreamingResponse(chunks, media_type="text/plain; charset=utf-8", headers=headers)


@router.delete("/{lexicon_id}", status_code=204)
@policy(Scope.TRAIN, audit=True)
def delete_lexicon(lexicon_id: LexiconId, database: DatabaseDep, caller: CallerDep) -> None:
    """Delete a lexicon. 409 while an unfinished job needs it; versions trained with it do not need it."""
    service.delete(database, lexicon_id, caller)
