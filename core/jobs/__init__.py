"""Jobs: kinds, posting, running, rows, events and checkpoints."""
