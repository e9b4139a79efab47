"""Shared by all processes of the service: settings, logs, tracing, messages over Redis."""
