"""Names of the job queues."""

#: Jobs that take seconds. A worker reserved for them never makes them wait for jobs that take hours.
QUICK = "quick"
#: All other jobs.
SLOW = "slow"
#: All queues; each is the key of a Redis list. A worker takes from the first non-empty queue in order of name.
QUEUES = (QUICK, SLOW)
