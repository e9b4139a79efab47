"""The worker process: it takes jobs from the queue, holds their leases and publishes their results."""
