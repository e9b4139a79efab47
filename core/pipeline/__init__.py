"""From a corpus to a model: training, evaluation, experiments, the estimator."""
