"""Methods that both clients share, made of one function each.

A function of `tagsmith.client.calls` defines what to send and how to read the response. The descriptors here turn it
into a method: on `Client` it returns the value, on `AsyncClient` a coroutine of it. The overloads of `__get__` tell
type checkers and editors which, with the parameters of the function.
"""

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, get_args, overload

from tagsmith.client.call import Call, Pages
from tagsmith.client.handles import AsyncJobHandle, JobHandle, Plan, async_handle_of, handle_of
from tagsmith.client.transport import Awaiting, Blocking
from tagsmith.wire import Job

P = ParamSpec("P")
T = TypeVar("T")

#: What a method on the class itself is: a function that takes the client first.
Unbound = Callable[..., Any]
_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
_TO = inspect.Parameter("to", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=str | PathLike[str])


class _Operation:
    """Two functions made of one: for clients that block, and for clients whose methods are awaited."""

    def __init__(self, make: Callable[..., Any], blocking: Unbound, awaiting: Unbound) -> None:
        self._make = make
        self._blocking = blocking
        self._awaiting = awaiting

    def __set_name__(self, owner: type, name: str) -> None:
        for function, returned in zip((self._blocking, self._awaiting), self.returned(), strict=True):
            function.__name__ = name
            function.__qualname__ = f"{owner.__qualname__}.{name}"
            function.__module__ = owner.__module__
            function.__doc__ = self.documentation()
            signature = inspect.Signature([_SELF, *self.parameters()], return_annotation=returned)
            function.__signature__ = signature  # type: ignore[attr-defined]  # what `help` and `inspect` show

    def parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self._make).parameters.values())

    def documentation(self) -> str | None:
        return inspect.getdoc(self._make)

    def returned(self) -> tuple[Any, Any]:
        """The annotations of the values that the two functions return."""
        raise NotImplementedError

    def read(self) -> Any:
        """The type that the call, or each item of the pages, is read as."""
        (kind,) = get_args(inspect.signature(self._make).return_annotation)
        return kind

    def bound(self, client: Blocking | Awaiting | None, owner: type | None) -> Any:
        """The method of a client; the function itself if it is looked up on the class."""
        kind = owner if client is None else type(client)
        function = self._awaiting if kind is not None and issubclass(kind, Awaiting) else self._blocking
        return function if client is None else function.__get__(client, kind)


class Called(_Operation, Generic[P, T]):
    """A method that makes a call and returns what it reads."""

    def __init__(self, make: Callable[P, Call[T]]) -> None:
        def blocking(client: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return client.send(make(*args, **kwargs))

        async def awaiting(client: Awaiting, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return await client.send(make(*args, **kwargs))

        super().__init__(make, blocking, awaiting)

    def returned(self) -> tuple[Any, Any]:
        return self.read(), self.read()

    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Unbound: ...
    def __get__(self, client: Blocking | Awaiting | None, owner: type) -> Any:
        return self.bound(client, owner)


class Paged(_Operation, Generic[P, T]):
    """A method that iterates over a list, fetching pages on the way."""

    def __init__(self, make: Callable[P, Pages[T]]) -> None:
        def blocking(client: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
            return client.iterate(make(*args, **kwargs))

        def awaiting(client: Awaiting, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
            return client.iterate(make(*args, **kwargs))

        super().__init__(make, blocking, awaiting)

    def returned(self) -> tuple[Any, Any]:
        return Iterator[self.read()], AsyncIterator[self.read()]  # type: ignore[misc]  # types at run time

    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Unbound: ...
    def __get__(self, client: Blocking | Awaiting | None, owner: type) -> Any:
        return self.bound(client, owner)


class Listed(_Operation, Generic[P, T]):
    """A method that returns a whole list."""

    def __init__(self, make: Callable[P, Pages[T]]) -> None:
        def blocking(client: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> list[T]:
            return list(client.iterate(make(*args, **kwargs)))

        async def awaiting(client: Awaiting, /, *args: P.args, **kwargs: P.kwargs) -> list[T]:
            return [item async for item in client.iterate(make(*args, **kwargs))]

        super().__init__(make, blocking, awaiting)

    def returned(self) -> tuple[Any, Any]:
        return list[self.read()], list[self.read()]  # type: ignore[misc]  # types at run time

    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, list[T]]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, list[T]]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Unbound: ...
    def __get__(self, client: Blocking | Awaiting | None, owner: type) -> Any:
        return self.bound(client, owner)


class Saved(_Operation, Generic[P]):
    """A method that writes a response to a file, whose path it takes first."""

    def __init__(self, make: Callable[P, Call[Any]]) -> None:
        def blocking(client: Blocking, to: str | PathLike[str], /, *args: P.args, **kwargs: P.kwargs) -> Path:
            return client.save(make(*args, **kwargs), to)

        async def awaiting(
            client: Awaiting, to: str | PathLike[str], /, *args: P.args, **kwargs: P.kwargs
        ) -> Path:
            return await client.save(make(*args, **kwargs), to)

        super().__init__(make, blocking, awaiting)

    def parameters(self) -> list[inspect.Parameter]:
        return [_TO.replace(kind=inspect.Parameter.POSITIONAL_ONLY), *super().parameters()]

    def documentation(self) -> str | None:
        return f"{super().documentation()}\n\nIt is written to the file `to` while it arrives."

    def returned(self) -> tuple[Any, Any]:
        return Path, Path

    @overload
    def __get__(
        self, client: Blocking, owner: type
    ) -> Callable[Concatenate[str | PathLike[str], P], Path]: ...
    @overload
    def __get__(
        self, client: Awaiting, owner: type
    ) -> Callable[Concatenate[str | PathLike[str], P], Coroutine[Any, Any, Path]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Unbound: ...
    def __get__(self, client: Blocking | Awaiting | None, owner: type) -> Any:
        return self.bound(client, owner)


class Handled(_Operation, Generic[P]):
    """A method that returns a handle of a job, often of one that it starts."""

    def __init__(self, make: Callable[P, Call[Job] | Plan]) -> None:
        def blocking(client: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle:
            return handle_of(client, make(*args, **kwargs))

        async def awaiting(client: Awaiting, /, *args: P.args, **kwargs: P.kwargs) -> AsyncJobHandle:
            return await async_handle_of(client, make(*args, **kwargs))

        super().__init__(make, blocking, awaiting)

    def returned(self) -> tuple[Any, Any]:
        return JobHandle, AsyncJobHandle

    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, JobHandle]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, AsyncJobHandle]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Unbound: ...
    def __get__(self, client: Blocking | Awaiting | None, owner: type) -> Any:
        return self.bound(client, owner)
