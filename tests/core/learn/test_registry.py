"""Adding a trainer is one file: the example of CONTRIBUTING is put into its family and trains."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tagsmith.core.learn.trainers.registry import EXAMPLES, SPECS

ROOT = Path(__file__).parents[3]

#: Puts a folder into the path of the family package before the registry looks, and trains the kind with all defaults.
SCRIPT = """
import json, sys
from tagsmith.core.learn.trainers import margin

margin.__path__.append(sys.argv[1])

from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.learn.trainers.registry import EXAMPLES, SPECS
from tagsmith.core.pipeline.train import train

spec = Learning.model_validate({"trainer": {"kind": "timid-perceptron", "passes": 2}})
corpus = read_conll(generate("references", 60, 1), max_line_bytes=1 << 16)
messages = []
result = finished(train(spec, corpus, 0.2), lambda step: messages.append(step.message))
print(json.dumps({
    "kinds": [each.model_fields["kind"].default for each in SPECS],
    "example": EXAMPLES[type(spec.trainer)].kind,
    "stages": [each["properties"]["kind"]["const"] for each in Learning.model_json_schema()["$defs"].values()
               if "kind" in each.get("properties", {}) and "const" in each["properties"]["kind"]],
    "active": result.active_features,
    "memory": any("training takes about" in each for each in messages),
}))
"""


def test_the_file_of_contributing_is_a_whole_trainer(tmp_path: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(r"`core/learn/trainers/margin/(\w+\.py)`.*?```python\n(.*?)```", page, re.DOTALL)
    assert found is not None
    (tmp_path / found[1]).write_text(found[2], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    report = json.loads(done.stdout)
    assert report["kinds"] == [
        "sgd", "asgd", "sgd-l1", "lbfgs", "owlqn", "adf", "madf", "perceptron", "averaged-perceptron", "pa", "mira",
        "dca", "cw", "arow", "timid-perceptron", "prox-grad", "two-stage", "sparseptron",
    ]  # fmt: skip
    assert "timid-perceptron" in report["stages"]
    assert report["example"] == "averaged-perceptron"
    assert report["active"] > 0
    assert report["memory"]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.model_fields["kind"].default)
def test_a_trainer_lies_in_a_file_named_like_its_kind_and_has_an_example(spec: type) -> None:
    kind = spec.model_fields["kind"].default  # type: ignore[attr-defined]
    assert spec.__module__.rpartition(".")[2] == kind.replace("-", "_")
    assert EXAMPLES[spec].total_passes >= 1
