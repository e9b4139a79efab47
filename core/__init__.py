"""Framework-free numerics and storage: corpora, features, inference, learners, models, SQL."""
