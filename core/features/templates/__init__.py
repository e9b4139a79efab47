"""Feature templates and the syntaxes they are written in."""
