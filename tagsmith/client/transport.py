"""What both clients can do, as base classes: send calls, iterate over lists, save downloads, follow jobs."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from tagsmith.client.call import Call, Pages
from tagsmith.wire import JobEvent, JobProgress

T = TypeVar("T")


class Blocking(ABC):
    """A client whose methods block until the server has responded."""

    @abstractmethod
    def send(self, call: Call[T]) -> T:
        """Make a call, and return what it reads."""

    @abstractmethod
    def iterate(self, pages: Pages[T]) -> Iterator[T]:
        """Iterate over the items of a list, fetching a page when it is needed."""

    @abstractmethod
    def save(self, call: Call[Any], to: str | PathLike[str]) -> Path:
        """Write the response to a file while it arrives, and return its path. A failure leaves no part of a file."""

    @abstractmethod
    def follow(self, job_id: str, *, after: int = 0) -> Iterator[JobEvent | JobProgress]:
        """Yield each event once, in order, as it happens; return when the job has ended.

        A lost connection is resumed where it broke.
        """


class Awaiting(ABC):
    """A client whose methods are awaited."""

    @abstractmethod
    async def send(self, call: Call[T]) -> T:
        """Make a call, and return what it reads."""

    @abstractmethod
    def iterate(self, pages: Pages[T]) -> AsyncIterator[T]:
        """Iterate over the items of a list, fetching a page when it is needed."""

    @abstractmethod
    async def save(self, call: Call[Any], to: str | PathLike[str]) -> Path:
        """Write the response to a file while it arrives, and return its path. A failure leaves no part of a file."""

    @abstractmethod
    def follow(self, job_id: str, *, after: int = 0) -> AsyncIterator[JobEvent | JobProgress]:
        """Yield each event once, in order, as it happens; return when the job has ended.

        A lost connection is resumed where it broke.
        """
