"""The `tagsmith` command: against a server, or with `--local` on files.

Modules import what is slow to import (httpx, numba, the server) in the functions that use it.
"""
