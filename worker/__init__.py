"""The process that trains: takes jobs from the queue, holds their leases, publishes what they made."""
