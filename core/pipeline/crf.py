"""`CRF`: in place of `sklearn_crfsuite.CRF`, with the same arguments, attributes and methods."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.model import file
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline import crfsuite
from tagsmith.core.pipeline.crfsuite import CrfTagger, TrainingLog
from tagsmith.core.pipeline.estimator import (
    Labels,
    NotFitted,
    SequenceEstimator,
    Sequences,
    Token,
    corpus_of,
    learning_of,
    listed,
    marginals_of,
    share_right,
)
from tagsmith.core.pipeline.train import train


class CRF(SequenceEstimator):
    """Labels sequences of feature dicts, as `sklearn_crfsuite.CRF` does. None means CRFsuite's default.

    Parameters
    ----------
    algorithm : "lbfgs" (the default; OWL-QN if `c1` is given), "l2sgd", "ap", "pa" or "arow".
    min_freq : minimum frequency of a feature: an attribute with a label, or a pair of labels.
    all_possible_states, all_possible_transitions : also weigh attributes with labels, or pairs of labels, that do not
        occur together.
    c1, c2 : strength of the L1 and L2 penalties (lbfgs; l2sgd takes `c2`).
    max_iterations : the most iterations.
    num_memories : past steps that lbfgs uses.
    period, delta : stop when the objective improves by less than `delta` in `period` iterations (lbfgs, which takes the
        mean of the last ten; l2sgd).
    pa_type, c, error_sensitive, averaging : the variant of pa, its aggressiveness, whether the cost grows with the
        number of wrong labels, and whether weights are averaged.
    variance, gamma : initial variance of a weight, and weight of the loss against change (arow).
    verbose : print each iteration.
    model_filename : where `fit` writes the model; or the file of a model to use, of Tagsmith or of CRFsuite.
    epsilon, linesearch, max_linesearch, calibration_eta, calibration_rate, calibration_samples,
    calibration_candidates, calibration_max_trials, keep_tempfiles : accepted, without effect.
    trainer_cls : not supported.
    """

    #: What happened in each iteration; None before `fit`.
    training_log_: TrainingLog | None = None

    def __init__(  # noqa: PLR0913, PLR0917  # as sklearn-crfsuite has them, in the same order
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: int | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | Path | None = None,
        keep_tempfiles: bool = False,
        trainer_cls: Any = None,
    ) -> None:
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.calibration_eta = calibration_eta
        self.calibration_rate = calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type = pa_type
        self.c = c
        self.error_sensitive = error_sensitive
        self.averaging = averaging
        self.variance = variance
        self.gamma = gamma
        self.verbose = verbose
        self.model_filename = model_filename
        self.keep_tempfiles = keep_tempfiles
        self.trainer_cls = trainer_cls

    def fit(
        self, X: Sequences, y: Labels, X_dev: Sequences | None = None, y_dev: Labels | None = None
    ) -> Self:
        """Learn from sequences and their labels; `X_dev` and `y_dev` are evaluated on after each iteration."""
        if (X_dev is None) != (y_dev is None):
            raise ValueError("Pass both X_dev and y_dev, or neither.")
        if self.trainer_cls is not None:
            raise ValueError("trainer_cls is not supported: it is a class of python-crfsuite. Remove it.")
        X_dev, y_dev = listed(X_dev), listed(y_dev)
        dev = None if X_dev is None or y_dev is None else corpus_of(X_dev, y_dev)
        learning = learning_of(crfsuite.spec_of(self.get_params()))
        self.training_log_ = TrainingLog(self.verbose)
        result = self.training_log_.watch(train(learning, corpus_of(X, y, zeros_count=True), dev))
        self._tagger = Tagger(result.model)
        if self.model_filename is not None:
            file.save(result.model, Path(self.model_filename))
        if X_dev is not None and y_dev is not None:
            self.training_log_.score(y_dev, self._tag(X_dev))
        return self

    def predict(self, X: Sequences) -> NDArray[np.object_]:
        """Return the best labels of each sequence."""
        return np.array(self._tag(X), np.object_)

    def predict_single(self, xseq: Sequence[Token]) -> list[str]:
        """Return the best labels of one sequence."""
        return self._tag([xseq])[0]

    def predict_marginals(self, X: Sequences) -> NDArray[np.object_]:
        """Return the probability of every label for each token. Of margin algorithms they are not calibrated."""
        return np.array(marginals_of(self._fitted(), listed(X)), np.object_)

    def predict_marginals_single(self, xseq: Sequence[Token]) -> list[dict[str, float]]:
        """Return the probability of every label for each token of one sequence."""
        return marginals_of(self._fitted(), [xseq])[0]

    def score(self, X: Sequences, y: Labels) -> float:
        """Return the share of tokens with the correct label."""
        return share_right(self._tag(X), listed(y))

    @property
    def tagger_(self) -> CrfTagger | None:
        """A tagger with the methods of python-crfsuite's; None before `fit`."""
        tagger = self._opened()
        if tagger is None:
            return None
        made: tuple[Tagger, CrfTagger] | None = self.__dict__.get("_crf_tagger")
        if made is None or made[0] is not tagger:
            made = tagger, CrfTagger(tagger, len(self._model_bytes()))
            self._crf_tagger = made
        return made[1]

    @property
    def classes_(self) -> list[str] | None:
        """The labels."""
        return None if self.tagger_ is None else self.tagger_.labels()

    @property
    def size_(self) -> int | None:
        """The size of the model file in bytes."""
        return None if self.tagger_ is None else int(self.tagger_.info().header["size"])

    @property
    def num_attributes_(self) -> int | None:
        """The number of attributes with a weight."""
        return None if self.tagger_ is None else len(self.tagger_.info().attributes)

    @property
    def attributes_(self) -> list[str] | None:
        """The attributes with a weight."""
        return None if self.tagger_ is None else list(self.tagger_.info().attributes)

    @property
    def state_features_(self) -> dict[tuple[str, str], float] | None:
        """The weights of attributes with labels: `{(attribute, label): weight}`."""
        return None if self.tagger_ is None else self.tagger_.info().state_features

    @property
    def transition_features_(self) -> dict[tuple[str, str], float] | None:
        """The weights of pairs of labels: `{(before, after): weight}`."""
        return None if self.tagger_ is None else self.tagger_.info().transitions

    def __sklearn_is_fitted__(self) -> bool:
        return self._opened() is not None

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_crf_tagger", None)
        return state

    def _opened(self) -> Tagger | None:
        """The tagger of the model that was fitted, else of the file that `model_filename` names, if it is there."""
        if (
            not hasattr(self, "_tagger")
            and self.model_filename is not None
            and Path(self.model_filename).exists()
        ):
            self._tagger = Tagger.open(self.model_filename)
        return getattr(self, "_tagger", None)

    def _fitted(self) -> Tagger:
        if self._opened() is None and self.model_filename is not None:
            raise NotFitted(f"There is no file {self.model_filename}. Call fit, or correct model_filename.")
        return super()._fitted()
