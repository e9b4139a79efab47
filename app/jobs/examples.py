"""A body of each kind of job, for `/docs`."""

from typing import Any

_CORPUS, _TEST = "crp_01hzy3m5v8q2", "crp_01hzy3m9k4t7"

JOBS: dict[str, Any] = {
    "train": {
        "summary": "Train a version and promote it",
        "value": {
            "kind": "train",
            "model": "chunker",
            "corpus": _CORPUS,
            "dev": {"fraction": 0.1},
            "features": {"preset": "chunking"},
            "trainer": {"kind": "sgd-l1", "l1": 0.5, "passes": 30},
            "stop": {"patience": 5},
            "promote": "champion",
        },
    },
    "compare": {
        "summary": "Compare trainers on one corpus and dev set",
        "value": {
            "kind": "compare",
            "corpus": _CORPUS,
            "dev": {"fraction": 0.1},
            "features": {"preset": "chunking"},
            "trainers": [
                {"kind": "adf"},
                {"kind": "sgd"},
                {"kind": "averaged-perceptron", "name": "perceptron, averaged"},
                {"kind": "lbfgs", "passes": 100},
            ],
            "stop": {"kind": "flat", "window": 5, "deviation": 0.01},
        },
    },
    "tune": {
        "summary": "Search a grid by 4-fold cross-validation, then train with the best",
        "value": {
            "kind": "tune",
            "corpus": _CORPUS,
            "features": {"preset": "chunking"},
            "trainer": {"kind": "sgd-l1", "passes": 10},
            "search": {
                "kind": "grid",
                "fields": {"trainer.l1": [0.1, 0.5, 1.0], "features.cutoff": [1, 3]},
            },
            "folds": 4,
            "train": {"model": "chunker", "promote": "champion"},
        },
    },
    "tune at random": {
        "summary": "Search at random",
        "value": {
            "kind": "tune",
            "corpus": _CORPUS,
            "trainer": {"kind": "adf", "passes": 10},
            "search": {
                "kind": "random",
                "trials": 20,
                "fields": {
                    "trainer.c": {"low": 0.01, "high": 1, "scale": "log"},
                    "features.cutoff": {"low": 1, "high": 4, "integer": True},
                },
            },
        },
    },
    "evaluate": {
        "summary": "Score two versions and test whether they differ",
        "value": {"kind": "evaluate", "models": ["chunker:1", "chunker@champion"], "corpus": _TEST},
    },
    "tag": {
        "summary": "Tag a corpus and write it as JSON lines",
        "value": {"kind": "tag", "model": "chunker@champion", "corpus": _TEST, "format": "ndjson"},
    },
}
