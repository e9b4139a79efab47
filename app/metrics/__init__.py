"""Metrics: what Prometheus reads."""
