"""Typed clients of the HTTP API. They import httpx and `tagsmith.wire`, and nothing of the server."""

from tagsmith.client.asynchronous import AsyncClient, AsyncServedModel
from tagsmith.client.errors import ApiError
from tagsmith.client.sync import Client, ServedModel
from tagsmith.client.text import Span, TaggedText

__all__ = ["ApiError", "AsyncClient", "AsyncServedModel", "Client", "ServedModel", "Span", "TaggedText"]
