"""Marginals: the probability of every label at every token."""

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.model.decoding import DecodingOptions, decode
from tagsmith.core.model.tagger import Coded, Tagger


def marginals(tagger: Tagger, coded: Coded) -> NDArray[np.float32]:
    """Return the probability of each label at each token, (tokens, labels)."""
    return decode(tagger, coded, DecodingOptions(distributions=True)).distributions
