"""The page at `/`: models, jobs and tagging, for people."""
