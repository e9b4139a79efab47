"""Train, serve and use sequence taggers.

`Client` and `AsyncClient` call a server. `Tagger` opens a model file in process. `SequenceTagger` is an estimator in
the manner of scikit-learn, and `CRF` one that takes the place of `sklearn_crfsuite.CRF`.
Each is imported when it is first used: a client needs neither numba nor the server.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tagsmith.client import ApiError, AsyncClient, Client, JobFailed, Span
    from tagsmith.core.model.tagger import Tagger
    from tagsmith.core.pipeline.crf import CRF
    from tagsmith.core.pipeline.estimator import SequenceTagger

__all__ = ["CRF", "ApiError", "AsyncClient", "Client", "JobFailed", "SequenceTagger", "Span", "Tagger"]

_MODULES = {
    "CRF": "tagsmith.core.pipeline.crf",
    "ApiError": "tagsmith.client",
    "AsyncClient": "tagsmith.client",
    "Client": "tagsmith.client",
    "JobFailed": "tagsmith.client",
    "SequenceTagger": "tagsmith.core.pipeline.estimator",
    "Span": "tagsmith.client",
    "Tagger": "tagsmith.core.model.tagger",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # only this function needs it

    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
