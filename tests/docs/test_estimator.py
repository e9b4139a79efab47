"""The example of the page about the estimator prints what the page says."""

import contextlib
import inspect
import io
import re

from tagsmith.core.pipeline.estimator import SequenceTagger
from tests.docs.test_readme import ROOT

PAGE = (ROOT / "docs" / "estimator.md").read_text(encoding="utf-8")


def test_the_example_prints_what_stands_below_it() -> None:
    ((code, said),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == said


def test_every_parameter_is_in_the_table() -> None:
    table = PAGE.partition("| parameter |")[2].partition("\n\n")[0]
    for name in inspect.signature(SequenceTagger).parameters:
        assert f"`{name}`" in table
