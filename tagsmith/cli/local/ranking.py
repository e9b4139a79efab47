"""`tagsmith rank --local`: the sentences of a file that a model file is least sure about."""

from pathlib import Path
from typing import TYPE_CHECKING

from tagsmith.cli import recognition
from tagsmith.cli.commands.rank import input_of, print_listed
from tagsmith.cli.files import target_of
from tagsmith.cli.local import reading
from tagsmith.cli.local.tagging import LocalEngine
from tagsmith.cli.runs.watching import ProgressLine
from tagsmith.core.base.steps import finished
from tagsmith.core.pipeline.ranking import RankPlan, rank, written

if TYPE_CHECKING:
    from tagsmith.cli.commands.rank import RankOptions


def run(options: "RankOptions") -> int:
    """Rank the sentences of a file, and write the list."""
    model, plan = Path(options.model), RankPlan(**options.chosen)
    engine = LocalEngine.open(model)
    with (
        input_of(options, engine.model_input, engine.text_tokenizer) as given,
        target_of(options.out, "--out", input=options.file, model=model) as target,
    ):
        corpus = reading.read(given.path, given.format, given.format_options).corpus
        steps = rank(engine.tagger, corpus, plan, recognition.MAX_DECODED_BYTES)
        with ProgressLine(live=options.watch is not False, stderr=True) as line:
            line.message("ranking")
            ranking = finished(steps, lambda done: line.update({"fraction": done}))
        target.writelines(written(ranking))
    calibrated = engine.tagger.model.usage.calibrated
    print_listed(ranking.tagged.sentences, ranking.distinct, calibrated=calibrated)
    return 0
