"""Fuzzing of everything that reads what users send. `make test` tries the inputs in `corpus/` again."""
