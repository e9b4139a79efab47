"""Routes of the web page and its files."""

from collections.abc import Mapping
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.staticfiles import StaticFiles

from tagsmith.app.http.policy import policy

router = APIRouter(include_in_schema=False)

FOLDER = Path(__file__).parent / "static"
INDEX = "index.html"

#: The page loads scripts and styles only from this origin, never inline, and never converts text to markup. So the
#: names of labels, tokens and models cannot run as code.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Files of different versions of the page do not work together, so browsers revalidate each file.
    "Cache-Control": "no-cache",
}


@router.get("/")
@policy(scope=None)
async def page(request: Request) -> Response:
    """Return the web page."""
    return await _file(INDEX, request)


@router.get("/page/{name}")
@policy(scope=None)
async def part(name: str, request: Request) -> Response:
    """Return a style sheet or a script of the page."""
    return await _file(name, request)


async def _file(name: str, request: Request) -> Response:
    response = await StaticFiles(directory=FOLDER).get_response(name, request.scope)
    response.headers.update(HEADERS)
    return response
