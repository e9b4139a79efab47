"""How sure a model is: the probability of every label at every token."""

import numpy as np
from numpy.typing import NDArray

from core.model.decoding import Wanted, decode
from core.model.tagger import Coded, Tagger


def marginals(tagger: Tagger, coded: Coded) -> NDArray[np.float32]:
    """The probability of each label at each token, (tokens, labels)."""
    return decode(tagger, coded, Wanted(distributions=True)).distributions
