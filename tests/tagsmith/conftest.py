"""A running API on each database: the fixtures of the tests of `app`."""

from tests.app.conftest import client, database, http, server, settings

__all__ = ["client", "database", "http", "server", "settings"]
