"""Runs for people: follow a job, show progress, print results."""
