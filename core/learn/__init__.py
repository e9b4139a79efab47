"""Losses, penalties, schedules, one file a trainer, and the pass loop that drives them all."""
