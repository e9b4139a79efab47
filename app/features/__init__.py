"""Features, looked at before anything is trained."""
