"""The HTTP API, its client, and the `tagsmith` command."""
