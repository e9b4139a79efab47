"""The strings that CRF++ and Wapiti make of templates and data, rebuilt from the ids of our index.

What is expected stands here as the tools' manuals and sources have it, a case a line; what differs on purpose, and why,
is in `docs/features.md`.
"""

from itertools import pairwise

import numpy as np
import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.features import preview
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import compile_corpus
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.pipeline.build import build_model

TEXT = """\
Él PRP O
comió VBD O
un-2 NN B

Sí UH O
"""


def _corpus(text: str = TEXT) -> Corpus:
    return read_conll([text.encode()], max_line_bytes=1000)


def _strings(templates: str, syntax: str, corpus: Corpus) -> list[list[str]]:
    """The features of every token, by name, from the rows of the index."""
    features = FeatureSpec.model_validate({"templates": templates, "syntax": syntax}).resolve(corpus.names)
    compiled = compile_corpus(features, corpus)
    # A model with a weight for everything, so that it keeps the name of every attribute.
    problem = compiled.problem
    model = build_model(
        compiled, Weights(problem, np.ones((problem.attributes + 2) * problem.width, np.float32))
    )
    names = [model.attribute_name(i) for i in range(model.attributes.size)]
    assert len(set(names)) == len(names)
    attributes = problem.data
    found = [
        [names[row] for row in attributes.rows[a:b].tolist()] for a, b in pairwise(attributes.starts.tolist())
    ]
    assert found == preview.names(features, corpus)
    return found


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("U00:%x[0,0]", ["U00:Él", "U00:comió", "U00:un-2", "U00:Sí"]),
        ("U%x[0,1]", ["UPRP", "UVBD", "UNN", "UUH"]),
        # Boundaries keep their distance; those of a short sentence are counted from its own ends.
        ("U:%x[-1,0]", ["U:_B-1", "U:Él", "U:comió", "U:_B-1"]),
        ("U:%x[-2,0]", ["U:_B-2", "U:_B-1", "U:Él", "U:_B-2"]),
        ("U:%x[1,1]", ["U:VBD", "U:NN", "U:_B+1", "U:_B+1"]),
        ("U:%x[3,1]", ["U:_B+1", "U:_B+2", "U:_B+3", "U:_B+3"]),
        ("U:%x[-8,0]", ["U:_B-8", "U:_B-7", "U:_B-6", "U:_B-8"]),
        ("U:%x[-1,0]/%x[0,1]", ["U:_B-1/PRP", "U:Él/VBD", "U:comió/NN", "U:_B-1/UH"]),
        ("U01:%x[0,0]%x[0,1]", ["U01:ÉlPRP", "U01:comióVBD", "U01:un-2NN", "U01:SíUH"]),
        # Spaces and other characters around macros are text.
        ("U a [%x[0,0]] é", ["U a [Él] é", "U a [comió] é", "U a [un-2] é", "U a [Sí] é"]),
        ("U:constant", ["U:constant"] * 4),
        ("U#1:%x[0,1]", ["U#1:PRP", "U#1:VBD", "U#1:NN", "U#1:UH"]),
        # Leading zeros are digits like others.
        ("U:%x[-01,00]", ["U:_B-1", "U:Él", "U:comió", "U:_B-1"]),
    ],
)
def test_crfpp(template: str, expected: list[str]) -> None:
    assert [each for (each,) in _strings(template, "crf++", _corpus())] == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("u:%x[0,0]", ["u:Él", "u:comió", "u:un-2", "u:Sí"]),
        # The letter of the kind is written in lower case, nothing else is.
        ("U0A:%x[0,1]", ["u0A:PRP", "u0A:VBD", "u0A:NN", "u0A:UH"]),
        ("u:%x[-1,0]", ["u:_x-1", "u:Él", "u:comió", "u:_x-1"]),
        ("u:%x[4,0]", ["u:_x+2", "u:_x+3", "u:_x+4", "u:_x+4"]),
        # From the fifth on the places outside have one name.
        ("u:%x[-6,0]", ["u:_x-#", "u:_x-#", "u:_x-4", "u:_x-#"]),
        ("u:%x[6,0]", ["u:_x+4", "u:_x+#", "u:_x+#", "u:_x+#"]),
        ("u:%x[@1,0]", ["u:Él", "u:Él", "u:Él", "u:Sí"]),
        ("u:%x[@-1,0]", ["u:un-2", "u:un-2", "u:un-2", "u:Sí"]),
        ("u:%x[@2,1]", ["u:VBD", "u:VBD", "u:VBD", "u:_x+1"]),
        ("u:%x[@-2,1]", ["u:VBD", "u:VBD", "u:VBD", "u:_x-1"]),
        ("u:%x[@0,0]", ["u:_x-1"] * 4),
        ("u:%X[0,1]", ["u:prp", "u:vbd", "u:nn", "u:uh"]),
        ("u:%X[-1,1]", ["u:_x-1", "u:prp", "u:vbd", "u:_x-1"]),
        ('u:%t[0,1,"^V"]', ["u:false", "u:true", "u:false", "u:false"]),
        ('u:%T[0,1,"^V"]', ["u:false", "u:true", "u:false", "u:false"]),
        # A test outside the sentence is one of the boundary's name.
        ('u:%t[-1,0,"^_"]', ["u:true", "u:false", "u:false", "u:true"]),
        ('u:%m[0,0,"\\d"]', ["u:", "u:", "u:2", "u:"]),
        ('u:%m[0,1,"^.?.?"]', ["u:PR", "u:VB", "u:NN", "u:UH"]),
        ('u:%M[0,1,"^.?.?"]', ["u:pr", "u:vb", "u:nn", "u:uh"]),
        ('u:%m[-1,1,"^.?.?"]', ["u:_x", "u:PR", "u:VB", "u:_x"]),
        ('u:%m[0,0,".?.?$"]', ["u:Él", "u:ió", "u:-2", "u:Sí"]),
        ('u:%m[0,0,"\\p.*$"]', ["u:", "u:", "u:-2", "u:"]),
        ('u:%t[0,0,"é\\l*"]-%x[1,1]', ["u:false-VBD", "u:false-NN", "u:false-_x+1", "u:false-_x+1"]),
        ("u a b:%x[0,1] c # not this", ["u a b:PRP c", "u a b:VBD c", "u a b:NN c", "u a b:UH c"]),
        ("u:constant", ["u:constant"] * 4),
    ],
)
def test_wapiti(pattern: str, expected: list[str]) -> None:
    assert [each for (each,) in _strings(pattern, "wapiti", _corpus())] == expected


def test_several_templates_stand_in_their_order_at_each_token() -> None:
    strings = _strings("U0:%x[0,1]\nU1:%x[1,1]\n\n# comment\nU2:%x[0,1]/%x[1,1]\nB", "crf++", _corpus())
    assert strings[1] == ["U0:VBD", "U1:NN", "U2:VBD/NN"]


def test_templates_with_the_same_text_make_a_bag() -> None:
    strings = _strings("U:%x[-1,1]\nU:%x[1,1]", "crf++", _corpus())
    assert strings[1] == ["U:PRP", "U:NN"]


@pytest.mark.parametrize(("syntax", "template"), [("crf++", "U:%x[0,2]"), ("wapiti", 'u:%t[0,2,"a"]')])
def test_a_column_that_the_data_lacks_is_an_error_as_in_both_tools(syntax: str, template: str) -> None:
    with pytest.raises(Invalid) as raised:
        _strings(template, syntax, _corpus())
    assert raised.value.code == "missing_column"
    assert "no column 2" in raised.value.faults[0].reason
