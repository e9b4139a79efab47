"""The examples of the page about the estimators print what the page says."""

import contextlib
import inspect
import io
import re
from typing import Any

from tagsmith import CRF, SequenceTagger
from tests.docs.test_readme import ROOT

PAGE = (ROOT / "docs" / "estimator.md").read_text(encoding="utf-8")


def test_the_examples_print_what_stands_below_them() -> None:
    examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == PAGE.count("```python") == 2
    names: dict[str, Any] = {}
    for code, shown in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == shown


def test_every_parameter_is_in_a_table() -> None:
    for kind, heading in ((SequenceTagger, "| parameter |"), (CRF, "| argument |")):
        table = PAGE.partition(heading)[2].partition("\n\n")[0]
        for name in inspect.signature(kind).parameters:
            assert f"`{name}`" in table, name


def test_every_attribute_of_crf_is_named() -> None:
    names = {name for name in dir(CRF) if name.endswith("_") and not name.startswith("_")}
    assert {name for name in names if f"`{name}`" not in PAGE} == set()
