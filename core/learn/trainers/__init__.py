"""The trainers: one module per kind, in one package per family."""
