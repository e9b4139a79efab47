"""Health: liveness, readiness and version of an API process."""
