"""Models: versions, artifacts, aliases with history and rollback."""
