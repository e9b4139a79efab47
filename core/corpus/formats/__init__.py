"""The formats of a corpus: one module per format. `registry` finds them; `base` defines what a format is."""
