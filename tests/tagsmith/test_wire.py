"""The definitions of the wire: pydantic only, and in step with the words of the core."""

import ast
import sys
from pathlib import Path
from typing import get_args

import pytest

from tagsmith import wire
from tagsmith.core.base import names as core_names
from tagsmith.core.corpus.labels.codings import LabelCoding
from tagsmith.core.corpus.text.tokenizer import Tokenizer, TokenizerKind
from tagsmith.core.registry.references import DEFAULT_ALIAS
from tagsmith.core.store.ids import CorpusReference
from tagsmith.core.store.keys import Scope
from tagsmith.core.store.states import TERMINAL, JobAction, State
from tagsmith.wire import aliases, names, policies


def test_the_wire_imports_pydantic_only() -> None:
    for file in Path(wire.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                known = name.partition(".")[0] in {*sys.stdlib_module_names, "pydantic"}
                assert known or name.startswith("tagsmith.wire"), (file.name, name)


def test_the_words_of_the_wire_are_those_of_the_core() -> None:
    assert list(get_args(names.JobState)) == [state.value for state in State]
    assert list(get_args(names.JobActionName)) == [action.value for action in JobAction]
    assert {state.value for state in TERMINAL} == names.TERMINAL_STATES
    assert list(get_args(names.KeyScope)) == [scope.value for scope in Scope]
    assert (names.NAME_PATTERN, names.REFERENCE_PATTERN) == (
        core_names.NAME_PATTERN,
        core_names.REFERENCE_PATTERN,
    )
    assert names.Name == core_names.Name
    assert get_args(names.CorpusReference) == get_args(CorpusReference)[:2]
    assert names.DEFAULT_ALIAS == DEFAULT_ALIAS
    assert set(get_args(names.ChunkCoding)) == set(get_args(LabelCoding))
    kinds = {*get_args(TokenizerKind)} - {"pattern"}
    assert {Tokenizer.of(name).kind for name in get_args(names.TokenizerName)} == kinds


def test_every_class_is_exported_under_one_name() -> None:
    assert len(set(wire.__all__)) == len(wire.__all__)
    assert all(hasattr(wire, name) for name in wire.__all__)


@pytest.mark.parametrize("reason", [None, "", "  "])
def test_a_forced_move_needs_a_reason(reason: str | None) -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        aliases.AliasMove(version=1, force=True, reason=reason)


def test_a_response_ignores_fields_of_a_newer_server() -> None:
    found = policies.KeptVersion.model_validate({"version": 1, "because": [], "new": True})
    assert found.model_dump() == {"version": 1, "because": []}
