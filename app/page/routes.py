"""Routes of the page and of the files it is made of."""

from collections.abc import Mapping
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.staticfiles import StaticFiles

router = APIRouter(include_in_schema=False)

FOLDER = Path(__file__).parent / "static"
INDEX = "index.html"

#: Scripts and styles come from here and nowhere else, none of them stand in the page, and nothing makes markup of text:
#: whatever a label, a token or a model is called, it is shown and does nothing.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Files of two versions of the page would not fit together: ask each time whether they have changed.
    "Cache-Control": "no-cache",
}


@router.get("/")
async def page(request: Request) -> Response:
    """Give the page."""
    return await _file(INDEX, request)


@router.get("/page/{name}")
async def part(name: str, request: Request) -> Response:
    """Give a style or a script of the page."""
    return await _file(name, request)


async def _file(name: str, request: Request) -> Response:
    response = await StaticFiles(directory=FOLDER).get_response(name, request.scope)
    response.headers.update(HEADERS)
    return response
