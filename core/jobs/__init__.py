"""Jobs: kinds, submission, runs, rows, events and checkpoints."""
