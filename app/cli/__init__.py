"""The `tagsmith` command."""
