"""Measurements: commands that compare with peers in one run and write what they saw to `benchmarks/results/`."""
