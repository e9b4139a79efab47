"""`same` columns: whether a token is repeated."""

from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.base.jit import kernel, readonly
from tagsmith.core.features.columns.matched.base import MatchedBase, Matcher, TrainedMatcher, TrainingData
from tagsmith.core.features.columns.tokens import TokenColumn
from tagsmith.core.features.lexicon.dictionary import Dictionary

#: The values, by raw code.
_VALUES = ("other", "same")


class SameColumn(MatchedBase):
    """Whether the token `n` tokens later equals this one: `same` or `other`. No value past the end of the sentence."""

    kind: Literal["same"]
    n: Annotated[int, Field(ge=1, le=16)] = 1

    @property
    def sharing_key(self) -> tuple[object, ...]:
        return ("same",)

    def train_matcher(self, name: str, data: TrainingData) -> None:
        """Return None: the column compares tokens with each other and needs no matcher."""

    def fits(self, matcher: Matcher | None) -> bool:
        return matcher is None

    def raw_size(self, matcher: Matcher | None) -> int:  # noqa: ARG002
        return len(_VALUES)

    def raw_codes(
        self,
        matcher: Matcher | None,  # noqa: ARG002
        text: TokenColumn,
        left_out: Dictionary | None = None,  # noqa: ARG002
    ) -> Ids:
        out = np.empty(len(text.codes), np.int32)
        _compare(readonly(text.identities(), np.int32), text.offsets, self.n, out)
        return out

    def raw_names(self, trained: TrainedMatcher | None, data: TrainingData) -> Callable[[int], str]:  # noqa: ARG002
        return lambda code: _VALUES[code]


@kernel
def _compare(ids: Ids, offsets: Places, n: int, out: Ids) -> None:
    """out[t] = whether ids[t] equals ids[t + n], or -1 past the end of the sentence."""
    for sentence in range(offsets.shape[0] - 1):
        begin, end = offsets[sentence], offsets[sentence + 1]
        for t in range(begin, end):
            out[t] = (1 if ids[t] == ids[t + n] else 0) if t + n < end else -1
