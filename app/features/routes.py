"""The route that previews features."""

from typing import Annotated, Any

from fastapi import APIRouter, Body
from pydantic import PlainValidator

from tagsmith import wire
from tagsmith.app.deps import RuntimeDep
from tagsmith.app.features import service
from tagsmith.app.features.request import PreviewRequest, parse
from tagsmith.app.http.bodies import JsonRoute
from tagsmith.app.http.policy import policy
from tagsmith.core.store.keys import Scope

router = APIRouter(prefix="/features", tags=["features"], route_class=JsonRoute)

EXAMPLES: dict[str, Any] = {
    "preset": {
        "summary": "The features of a preset",
        "value": {"features": {"preset": "ner"}, "sentence": ["Wolff", "speelt", "in", "Madrid"]},
    },
    "templates": {
        "summary": "Templates of two columns and a derived one",
        "value": {
            "features": {
                "templates": [["word[-1]", "word[0]"], "1[0]", "ending", {"edge": True}],
                "derived": {"ending": {"kind": "suffix", "n": 3}},
            },
            "sentence": [["Rockwell", "NNP"], ["said", "VBD"]],
        },
    },
    "n-grams": {
        "summary": "N-grams of words and tags in a window",
        "value": {
            "features": {"templates": [{"grams": 3, "columns": ["word", "1"], "window": 2}, {"edge": True}]},
            "sentence": [["Rockwell", "NNP"], ["said", "VBD"]],
        },
    },
    "wapiti": {
        "summary": "Wapiti's patterns",
        "value": {
            "features": {"syntax": "wapiti", "templates": 'u:%x[-1,0]\nu:%t[0,0,"^\\u"]\nb'},
            "sentence": ["Rockwell", "said", "so"],
        },
    },
}

Request = Annotated[
    PreviewRequest,
    PlainValidator(parse, json_schema_input_type=PreviewRequest),
    Body(openapi_examples=EXAMPLES),
]


@router.post("/preview", response_model=wire.FeaturePreview)
@policy(Scope.READ, audit=False)
async def preview(request: Request, runtime: RuntimeDep) -> service.Preview:
    """Show the features of a sentence and, if a corpus is given, feature counts. Nothing is trained or stored."""
    return await service.make(request, runtime)
