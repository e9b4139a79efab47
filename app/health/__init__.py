"""Health: is the process alive, is it ready, which code is it."""
