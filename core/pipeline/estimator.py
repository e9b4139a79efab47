"""An estimator for Python with scikit-learn's `fit` and `predict`, based on the same trainers.

It takes feature dicts like sklearn-crfsuite, and works with scikit-learn's model selection. scikit-learn is optional:
only the method that scikit-learn itself calls imports it.
"""

import inspect
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from pydantic import TypeAdapter

from tagsmith.core.base.arrays import Ids
from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.spec import pointer, validated
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.attributes import AttributeCollector, InvalidAttribute
from tagsmith.core.corpus.bag import Bag, Cells
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.intern import empty_pool, intern, vocabulary_of
from tagsmith.core.corpus.vocabulary import pack
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.model import file
from tagsmith.core.model.marginals import marginals
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline.train import train

#: A token: an object of named attributes (see `tagsmith.core.corpus.attributes`), or a list of names.
Token = Mapping[str, Any] | Sequence[str]
Sequences = Sequence[Sequence[Token]]
Labels = Sequence[Sequence[str]]

Published_co = TypeVar("Published_co", covariant=True)

_SPEC: TypeAdapter[Learning] = TypeAdapter(Learning)


class NotFitted(ValueError, AttributeError):
    """The estimator is not fitted yet."""


class Publisher(Protocol[Published_co]):
    """What `push` needs of a client."""

    @property
    def import_model(self) -> Callable[[str, bytes], Published_co]:
        """Publish a model file as the next version of a model."""


class SequenceEstimator:
    """What estimators of sequences share: parameters, as scikit-learn reads them, and the model they have learned."""

    def push(self, client: Publisher[Published_co], name: str) -> Published_co:
        """Publish the fitted model with a client of a server, as the next version of the model `name`."""
        return client.import_model(name, self._model_bytes())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        del deep
        return {name: getattr(self, name) for name in _parameters(type(self))}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name."""
        known = _parameters(type(self))
        for name in params:
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for {self!r}. Valid parameters: {', '.join(known)}."
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        changed = {
            name: value for name, value in self.get_params().items() if value is not defaults[name].default
        }
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_tagger")

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the estimator. Only scikit-learn calls this."""
        from sklearn.utils import InputTags, Tags, TargetTags  # noqa: PLC0415

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True),
            input_tags=InputTags(two_d_array=False, dict=True, string=True),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Store the model as the bytes of its file: unpickled arrays would need other compiled kernels."""
        state = dict(self.__dict__)
        if state.pop("_tagger", None) is not None:
            state["_model_file"] = self._model_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.pop("_model_file", None)
        self.__dict__.update(state)
        if saved is not None:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model"
                path.write_bytes(saved)
                self._tagger = Tagger.open(path)

    def _fitted(self) -> Tagger:
        if not hasattr(self, "_tagger"):
            raise NotFitted(f"This {type(self).__name__} instance is not fitted yet. Call fit first.")
        return self._tagger

    def _tag(self, X: Any) -> list[list[str]]:
        return self._fitted().tag(listed(X))

    def _model_bytes(self) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            file.save(self._fitted().model, path)
            return path.read_bytes()


class SequenceTagger(SequenceEstimator):
    """Labels sequences of tokens. The parameters are those of a training job.

    Parameters
    ----------
    trainer : the `kind` of a trainer, such as "lbfgs", "sgd-l1" or "averaged-perceptron".
    passes, l1, l2 : common fields of trainers; None uses the default of the trainer.
    options : further fields of the trainer, by name.
    structure : "chain", or "independent" to label each token separately.
    cutoff : minimum number of occurrences of a feature.
    pairs : "all", or "seen" for weights of attributes and labels that occur together only.
    seed : determines the order of the sequences in online trainers.
    threads : number of threads, for trainers that can use several.
    """

    def __init__(  # noqa: PLR0913  # scikit-learn reads the parameters from this signature
        self,
        trainer: str = "lbfgs",
        *,
        passes: int | None = None,
        l1: float | None = None,
        l2: float | None = None,
        options: Mapping[str, Any] | None = None,
        structure: str = "chain",
        cutoff: int = 1,
        pairs: str = "all",
        seed: int = 1,
        threads: int = 1,
    ) -> None:
        self.trainer = trainer
        self.passes = passes
        self.l1 = l1
        self.l2 = l2
        self.options = options
        self.structure = structure
        self.cutoff = cutoff
        self.pairs = pairs
        self.seed = seed
        self.threads = threads

    def fit(self, X: Sequences, y: Labels) -> Self:
        """Learn from sequences and their labels."""
        spec = learning_of(self._spec())
        result = finished(train(spec, corpus_of(X, y), None))
        self._tagger = Tagger(result.model)
        self.classes_ = np.array(result.model.labels, object)
        self.n_passes_ = result.passes
        self.objective_ = result.objective
        self.n_features_ = result.active_features
        return self

    def predict(self, X: Sequences) -> list[list[str]]:
        """Return the best labels of each sequence."""
        return self._tag(_checked(listed(X)))

    def predict_marginals(self, X: Sequences) -> list[list[dict[str, float]]]:
        """Return the probability of every label for each token.

        For trainers that are not probabilistic, the values are not calibrated.
        """
        return marginals_of(self._fitted(), _checked(listed(X)))

    def score(self, X: Sequences, y: Labels) -> float:
        """Return the share of tokens with the correct label."""
        _check_lengths(X, y)
        return share_right(self.predict(X), y)

    def _spec(self) -> dict[str, Any]:
        given = {"passes": self.passes, "l1": self.l1, "l2": self.l2}
        trainer = {"kind": self.trainer, **{k: v for k, v in given.items() if v is not None}}
        return {
            "trainer": {**trainer, **(self.options or {})},
            "features": {"structure": self.structure, "cutoff": self.cutoff, "pairs": self.pairs},
            "seed": self.seed,
            "threads": self.threads,
        }


def learning_of(spec: Mapping[str, Any]) -> Learning:
    """Validate how an estimator learns; raise ValueError with the places of the faults."""
    try:
        learning = validated(_SPEC, dict(spec), "The estimator")
        learning.features.resolve([], trees=False)
    except Invalid as error:
        raise ValueError(_message_of(error)) from None
    return learning


def marginals_of(tagger: Tagger, X: Any) -> list[list[dict[str, float]]]:
    """Return the probability of every label for each token."""
    coded = tagger.code(X)
    names = tagger.labels
    found = marginals(tagger, coded).astype(np.float64)
    found /= found.sum(axis=1, keepdims=True)  # exact to float64, as sums of the float32 values are not
    rows = [dict(zip(names, row, strict=True)) for row in found.tolist()]
    return [rows[begin:end] for begin, end in pairwise(coded.offsets.tolist())]


def share_right(predicted: Labels, gold: Labels) -> float:
    """Return the share of tokens with the correct label."""
    right = [a == b for pair in zip(predicted, gold, strict=True) for a, b in zip(*pair, strict=True)]
    return float(np.mean(right)) if right else 0.0


def corpus_of(X: Sequences, y: Labels, *, zeros_count: bool = False) -> Corpus:
    """Make a corpus of sequences of tokens and their labels.

    With `zeros_count`, an attribute with the value 0 has been seen with the label of its token, as in CRFsuite.
    """
    X, y = _checked(listed(X)), listed(y)
    _check_lengths(X, y)
    gathered = _gathered(X)
    names, ids = intern(empty_pool(1), *gathered.spans(), 1)
    labels, gold = intern(empty_pool(1), *pack(list(_labels(y))), 1)
    offsets = np.cumsum([0, *map(len, X)])
    return Corpus(
        (),
        Column("label", vocabulary_of(labels, 0), gold),
        offsets,
        Bag(
            vocabulary_of(names, 0), _with_zeros(gathered, ids, gold) if zeros_count else gathered.cells(ids)
        ),
    )


def _with_zeros(gathered: AttributeCollector, ids: Ids, gold: Ids) -> Cells:
    """Return the cells of tokens, of those with the value 0 one for each attribute and label seen in no other way.

    They add nothing to any score. One is enough to show that a pair was seen.
    """
    starts, values = np.array([0, *gathered.ends], np.int64), np.array(gathered.values, np.float32)
    zero = values == 0
    pairs = ids.astype(np.int64) * (int(gold.max(initial=0)) + 1) + np.repeat(gold, np.diff(starts))
    found, first = np.unique(pairs[zero], return_index=True)
    kept = ~zero
    kept[np.flatnonzero(zero)[first[~np.isin(found, pairs[kept])]]] = True
    cells = Cells(starts, ids, values).only(kept)
    return Cells.of(cells.starts, cells.ids, cells.values) if (cells.values == 1).all() else cells


def _parameters(kind: type) -> list[str]:
    return [name for name in inspect.signature(kind).parameters if name != "self"]


def listed(values: Any) -> Any:
    """Return sequences, or what they are not, with generators replaced by lists."""
    if isinstance(values, Iterator):
        values = list(values)
    if isinstance(values, list) and any(isinstance(each, Iterator) for each in values):
        return [list(each) if isinstance(each, Iterator) else each for each in values]
    return values


def _checked(X: Any) -> Any:
    """Return X, or raise ValueError if it is not a list of sequences. A string would be split into letters."""
    if isinstance(X, (str, bytes, Mapping)) or not hasattr(X, "__len__"):
        raise ValueError("X must be a list of sequences of tokens.")
    for number, sequence in enumerate(X):
        if isinstance(sequence, (str, bytes, Mapping)) or not hasattr(sequence, "__len__"):
            raise ValueError(f"X[{number}] must be a sequence of tokens.")
    if len(X) == 0:
        raise ValueError("X has 0 sequences; at least 1 is required.")
    return X


def _check_lengths(X: Sequences, y: Any) -> None:
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} sequences, but y has {len(y)}.")
    for number, (sequence, labels) in enumerate(zip(X, y, strict=True)):
        if isinstance(labels, str) or not hasattr(labels, "__len__"):
            raise ValueError(f"y[{number}] must be a sequence of labels.")
        if len(sequence) != len(labels):
            raise ValueError(
                f"X[{number}] has {len(sequence)} tokens, but y[{number}] has {len(labels)} labels."
            )


def _gathered(X: Sequences) -> AttributeCollector:
    gathered = AttributeCollector()
    for number, sequence in enumerate(X):
        try:
            gathered.add_all(sequence)
        except InvalidAttribute as error:
            raise ValueError(f"X[{number}]{pointer(error.path)}: {error.reason}") from None
    return gathered


def _labels(y: Sequence[Sequence[Any]]) -> Iterator[str]:
    for label in chain.from_iterable(y):
        if not isinstance(label, str) or not label:
            raise ValueError(f"Labels must be non-empty strings, not {label!r}.")
        yield str(label)


def _message_of(error: Invalid) -> str:
    return " ".join([error.message, *(f"{fault.pointer or ''}: {fault.reason}." for fault in error.faults)])
