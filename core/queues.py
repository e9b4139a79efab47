"""The queues that jobs wait in."""

#: Jobs of seconds, so that none of them waits behind one of hours while a worker is kept for them.
QUICK = "quick"
#: All other jobs.
SLOW = "slow"
#: Every queue; each is the key of a Redis list. A worker takes from the first, by name, that has something.
QUEUES = (QUICK, SLOW)
