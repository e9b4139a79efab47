"""Typed clients of the HTTP API. They import httpx and `tagsmith.wire`, and nothing of the server."""

from tagsmith.client.asynchronous import AsyncClient
from tagsmith.client.errors import ApiError, JobFailed, ServerAway
from tagsmith.client.handles import AsyncJobHandle, AsyncServedModel, JobHandle, ServedModel
from tagsmith.client.sync import Client
from tagsmith.client.text import ParsedSentences, SentenceTree, Span, TaggedText

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncJobHandle",
    "AsyncServedModel",
    "Client",
    "JobFailed",
    "JobHandle",
    "ParsedSentences",
    "SentenceTree",
    "ServedModel",
    "ServerAway",
    "Span",
    "TaggedText",
]
