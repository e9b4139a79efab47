"""Routes of the web page and its files."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.staticfiles import StaticFiles

from tagsmith.app.http.policy import policy
from tagsmith.core.corpus.synthetic.generate import generate

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

#: Enough to learn from in a few seconds.
SAMPLE_SENTENCES = 2000
SAMPLE_SEED = 1


@router.get("/")
@policy(scope=None)
async def page(request: Request) -> Response:
    """Return the web page."""
    return await _file(INDEX, request)


@router.get("/page/sample.conll")
@policy(scope=None)
def sample() -> StreamingResponse:
    """Return a generated corpus of references, to try the service with."""
    return StreamingResponse(_sample(), media_type="text/plain; charset=utf-8", headers=HEADERS)


@router.get("/page/{path:path}")
@policy(scope=None)
async def part(path: str, request: Request) -> Response:
    """Return a style sheet or a script of the page."""
    return await _file(path, request)


async def _file(path: str, request: Request) -> Response:
    response = await StaticFiles(directory=FOLDER).get_response(path, request.scope)
    response.headers.update(HEADERS)
    return response


def _sample() -> Iterator[bytes]:
    """Generate the words and labels of the sample. A model that needs no other column can tag text."""
    for chunk in generate("references", SAMPLE_SENTENCES, SAMPLE_SEED):
        rows = (line.split() for line in chunk.decode().split("\n"))
        yield "\n".join(f"{row[0]}\t{row[-1]}" if row else "" for row in rows).encode()
