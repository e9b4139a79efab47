"""Benchmarks: commands that compare with other tools in one run and write the results to `benchmarks/results/`."""
