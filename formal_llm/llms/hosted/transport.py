"""The HTTP clients inside the clients of the SDKs: of the SDK's own kind, with bounds.

All data from servers passes through here, whatever the provider. A response is read up to its bound, after
decompression and part by part, so that neither a flood nor a decompression bomb fills the memory. A synchronous client
limits each wait for the network to the time left, so that not even single bytes prolong it; an asynchronous one is
cancelled from outside. A wait that a server requests is only passed on to the SDK if it fits into the time left.

Asynchronous clients use aiohttp if it is installed (the extra ``aiohttp``), since it needs less processor time.
"""

from __future__ import annotations

import email.utils
import logging
import math
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import aclosing, suppress
from functools import cache
from itertools import count
from types import ModuleType
from typing import Any

import httpcore2
import httpx2

from formal_llm.llms.hosted.bounds import OutOfBounds, RequestBounds, seconds_left
from formal_llm.llms.hosted.pace import ALIVE, TOO_MANY, find_pace

#: The extension of a response with the seconds that its server asked to wait.
WAIT = "formal_llm.wait"
#: The extension of a request with the number of redirects that led to it, and the most of them.
REDIRECTED, _MOST_REDIRECTS = "formal_llm.redirected", 5
#: Seconds beyond which an SDK may refuse to wait by itself.
_LONG = 120
#: The time left, in seconds, up to which nothing is started any more.
_SHORTEST = 0.001


def sync_client(sdk: ModuleType, bounds: RequestBounds) -> Any:
    """Create a synchronous HTTP client for a client of the SDK."""
    client = _create_classes(sdk)[0](verify=_load_certificates())
    client.bounds = bounds
    return client


def async_client(sdk: ModuleType, bounds: RequestBounds) -> Any:
    """Create an asynchronous HTTP client for a client of the SDK."""
    client = _create_classes(sdk)[1](verify=_load_certificates())
    client.bounds = bounds
    return client


@cache
def _load_certificates() -> ssl.SSLContext:
    """Load the trusted certificates, only once, since it takes longer than many requests."""
    return httpx2.create_ssl_context()


class Bounded:
    """The common base of the HTTP clients with bounds."""

    bounds: RequestBounds
    #: The class of the errors: also an error of the SDK, so that the SDK propagates it without another try.
    error: type[OutOfBounds]

    def _make_error(self, problem: str) -> OutOfBounds:
        return self.error(problem)

    def _in_time(self) -> None:
        left = seconds_left()
        if left is not None and left <= _SHORTEST:
            raise self._make_error(self.bounds.late())

    def _limit_wait(self, response: httpx2.Response) -> None:
        """Limit the wait that a server requests, which may be anything; a wait that does not fit is removed."""
        wait = None if response.status_code < 400 else retry_after(response.headers)
        find_pace(str(response.request.url)).note_response(response.status_code, response.headers, wait)
        if response.status_code < 400:
            return
        for name in ("retry-after", "retry-after-ms"):
            response.headers.pop(name, None)
        if wait is not None:
            left = seconds_left()
            if wait >= (self.bounds.deadline if left is None else left):
                response.headers["x-should-retry"] = "false"  # both SDKs obey
            else:
                response.headers["retry-after"] = f"{wait:.3f}"
            if wait > _LONG or "x-should-retry" in response.headers:
                response.extensions[WAIT] = wait

    def _list_waits(self, request: httpx2.Request) -> Iterator[float]:
        """Yield the seconds to wait, one by one, until a request may be sent to its host.

        Raises:
            OutOfBounds: the wait would be longer than the time left.
        """
        pace, size = find_pace(str(request.url)), len(request.content)
        for lost in count():
            wait = pace.take_turn(size, lost)
            if not wait:
                return
            left = seconds_left()
            if left is not None and wait >= left:
                raise self._make_error(self.bounds.late())
            yield wait

    def _is_repeated(self, response: httpx2.Response, since: float) -> bool:
        """Return whether a refused request is sent again here: the host has answered somebody since a time.

        Otherwise the SDK decides, which tries a few times.
        """
        alive = find_pace(str(response.request.url)).alive_at > since
        return response.status_code == TOO_MANY and alive and response.headers.get("x-should-retry") != "false"

    def _follow_redirect(self, response: httpx2.Response) -> httpx2.Request:
        """Return the request that a server redirects to: only on the same host, and not again and again.

        Raises:
            OutOfBounds: it redirects elsewhere: neither a key nor a prompt is sent to another host.
        """
        request = response.request
        try:
            there = request.url.join(response.headers["location"])
        except httpx2.InvalidURL:
            raise self._make_error(
                "the server redirects to what is no address; check the address of the server"
            ) from None
        redirected = request.extensions.get(REDIRECTED, 0) + 1
        if (there.scheme, there.host, there.port) != (request.url.scheme, request.url.host, request.url.port):
            place = f"{there.scheme}://{there.host}" + (f":{there.port}" if there.port else "")
            raise self._make_error(
                f"the server redirects to another host, {place}, and nothing is sent there; "
                "give that address if it is the right one"
            )
        if redirected > _MOST_REDIRECTS:
            raise self._make_error(f"the server redirects again and again, at last to {there.path}; check the address")
        if response.status_code not in (307, 308):
            raise self._make_error(f"the server redirects to {there.path} and wants it read there; check the address")
        headers = [(name, value) for name, value in request.headers.multi_items() if name != "host"]
        extensions = {**request.extensions, REDIRECTED: redirected}
        return httpx2.Request(request.method, there, headers=headers, content=request.content, extensions=extensions)

    def _is_within_bound(self, response: httpx2.Response) -> bool:
        """Return whether a response is known in advance to be within its bound."""
        length = response.headers.get("content-length", "")
        plain = "content-encoding" not in response.headers and length.isascii() and length.isdigit()
        return plain and len(length) < 16 and int(length) <= self.bounds.max_bytes

    def _add_size(self, size: int, part: bytes) -> int:
        size += len(part)
        if size > self.bounds.max_bytes:
            raise self._make_error(self.bounds.large())
        return size


_COMPRESSES = "the server compresses what it streams, though it was asked not to"


class _Waiting(Bounded):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # These attributes have no public name; tests/llms/hosted/test_sdks.py fails if they vanish.
        transports: Iterable[Any] = (self._transport, *self._mounts.values())  # type: ignore[attr-defined]
        for transport in transports:
            pool = getattr(transport, "_pool", None)
            if pool is not None:
                pool._network_backend = _Punctual(pool._network_backend)

    def send(self, request: httpx2.Request, *, stream: bool = False, **more: Any) -> httpx2.Response:
        since = time.monotonic() - ALIVE
        request.read()  # a file that is sent comes in parts
        while True:
            for wait in self._list_waits(request):
                time.sleep(wait)
            response = self._send_once(request, stream, **{**more, "follow_redirects": False})
            if response.has_redirect_location:
                response.close()
                request = self._follow_redirect(response)
            elif not self._is_repeated(response, since):
                return response
            else:
                response.close()
                since = time.monotonic()

    def _send_once(self, request: httpx2.Request, stream: bool, **more: Any) -> httpx2.Response:
        self._in_time()
        try:
            response: httpx2.Response = super().send(request, stream=True, **more)  # type: ignore[misc]
            self._limit_wait(response)
            if stream:
                if _is_compressed(response):
                    response.close()
                    raise self._make_error(_COMPRESSES)
                response.stream = _Counted(response.stream, self)
                return response
            if self._is_within_bound(response):
                response.read()
                return response
            try:
                size, parts = 0, []
                for part in response.iter_bytes():
                    size = self._add_size(size, part)
                    parts.append(part)
            finally:
                response.close()
            return _build_response(response, parts)
        except httpx2.RequestError:
            self._in_time()  # else the SDK would try again
            raise

    def __del__(self) -> None:
        if not getattr(self, "is_closed", True):
            self.close()  # type: ignore[attr-defined]


class _Counted(httpx2.SyncByteStream):
    """The stream of a server, up to the bound of its size."""

    def __init__(self, stream: Any, client: Bounded) -> None:
        self._stream = stream
        self._client = client

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        try:
            for part in self._stream:
                size = self._client._add_size(size, part)
                yield part
        except httpx2.RequestError:
            self._client._in_time()
            raise

    def close(self) -> None:
        self._stream.close()


class _AsyncCounted(httpx2.AsyncByteStream):
    """The same for an asynchronous client."""

    def __init__(self, stream: Any, client: Bounded) -> None:
        self._stream = stream
        self._client = client

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        with _as_httpx():
            async for part in self._stream:
                size = self._client._add_size(size, part)
                yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


def _is_compressed(response: httpx2.Response) -> bool:
    return bool(response.headers.get("content-encoding", "identity") != "identity")


class _Awaited(Bounded):
    async def send(self, request: httpx2.Request, *, stream: bool = False, **more: Any) -> httpx2.Response:
        import asyncio  # imported here: it takes half of this library's import time

        since = time.monotonic() - ALIVE
        while True:
            for wait in self._list_waits(request):
                await asyncio.sleep(wait)
            is_direct = not any(self._mounts.values())  # type: ignore[attr-defined]  # a proxy resolves the names
            if is_direct and (name := find_name(request.url.host)) is not None:
                with suppress(OSError, ValueError):  # reported when the connection is made
                    await asyncio.wrap_future(name)  # ended from outside
            response = await self._send_once(request, stream, **{**more, "follow_redirects": False})
            if response.has_redirect_location:
                await response.aclose()
                request = self._follow_redirect(response)
            elif not self._is_repeated(response, since):
                return response
            else:
                await response.aclose()
                since = time.monotonic()

    async def _send_once(self, request: httpx2.Request, stream: bool, **more: Any) -> httpx2.Response:
        with _as_httpx():
            response: httpx2.Response = await super().send(request, stream=True, **more)  # type: ignore[misc]
            self._limit_wait(response)
            if stream:
                if _is_compressed(response):
                    await response.aclose()
                    raise self._make_error(_COMPRESSES)
                response.stream = _AsyncCounted(response.stream, self)
                return response
            if self._is_within_bound(response):
                await response.aread()
                return response
            try:
                size, parts = 0, []
                async with aclosing(response.aiter_bytes()) as body:
                    async for part in body:
                        size = self._add_size(size, part)
                        parts.append(part)
            finally:
                await response.aclose()
            return _build_response(response, parts)


@cache
def _create_classes(sdk: ModuleType) -> tuple[type[Any], type[Any]]:
    """Create the HTTP client classes for an SDK, synchronous and asynchronous."""
    base = sdk.OpenAIError if sdk.__name__ == "openai" else sdk.AnthropicError
    error = type("OutOfBounds", (OutOfBounds, base), {})
    async_base = sdk.DefaultAioHttpClient if has_aiohttp() else sdk.DefaultAsyncHttpxClient
    return (
        type("BoundedClient", (_Waiting, sdk.DefaultHttpxClient), {"error": error}),
        type("BoundedAsyncClient", (_Awaited, async_base), {"error": error}),
    )


def _build_response(response: httpx2.Response, parts: list[bytes]) -> httpx2.Response:
    """Create a response whose body has been read and decoded."""
    outdated = ("content-encoding", "content-length", "transfer-encoding")
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in outdated]
    return httpx2.Response(
        response.status_code, headers=headers, content=b"".join(parts), request=response.request,
        extensions=response.extensions, history=response.history,
    )  # fmt: skip


def retry_after(headers: httpx2.Headers) -> float | None:
    """Return the seconds that a server asks to wait, from a number, a date, or its own header; None if unset."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        return None if math.isnan(seconds) or seconds <= 0 else seconds
    try:
        date = email.utils.parsedate_tz(headers.get("retry-after", ""))
        seconds = 0 if date is None else email.utils.mktime_tz(date) - time.time()
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if seconds > 0 else None


#: The names that were resolved, or are being resolved, and the time of that; and the seconds for which it holds.
_NAMES: dict[tuple[int, str], tuple[Future[list[str]], float]] = {}
_NAME_HOLDS = 60.0


def find_name(host: str) -> Future[list[str]] | None:
    """Begin to find the addresses of a host, in a thread of its own; None if there is nothing to wait for.

    The system's resolver cannot be interrupted. A thread that nobody joins can be left to itself at the deadline. A
    client that waits connects to the addresses; a client that is awaited resolves the name once more.
    """
    if host == "localhost" or re.fullmatch(r"[\d.]+|.*:.*", host):
        return None
    here = (os.getpid(), host)  # a forked process has none of its parent's threads
    known, since = _NAMES.get(here, (None, 0.0))
    failed = known is not None and known.done() and known.exception() is not None
    if known is not None and not failed and time.monotonic() - since < _NAME_HOLDS:
        return known
    found: Future[list[str]] = Future()
    found.set_running_or_notify_cancel()  # who waits no longer does not end it

    def resolve_name() -> None:
        try:
            listed = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            found.set_result(list(dict.fromkeys(str(one[4][0]) for one in listed)))
        except Exception as error:
            found.set_exception(error)

    _NAMES[here] = found, time.monotonic()
    threading.Thread(target=resolve_name, name="formal-llm resolver", daemon=True).start()
    return found


# -- waiting for the network ----------------------------------------------------------------------------------------


def _limit_timeout(timeout: float | None, late: type[Exception] = httpcore2.ReadTimeout) -> float | None:
    """Limit a timeout to the time left; raise an error if there is none, even if the data is already there."""
    left = seconds_left()
    if left is None:
        return timeout
    if left <= _SHORTEST:
        raise late("the deadline has passed")
    return left if timeout is None else min(left, timeout)


def _find_addresses(host: str, timeout: float | None) -> list[str]:
    """Return the addresses of a host, within a time."""
    name = find_name(host)
    try:
        return [host] if name is None else name.result(timeout)
    except TimeoutError as error:
        raise httpcore2.ConnectTimeout("the name was not resolved in time") from error
    except (OSError, UnicodeError) as error:
        raise httpcore2.ConnectError(f"getaddrinfo: {error}") from error


class _Punctual(httpcore2.NetworkBackend):
    """A network backend whose waits end with the current question."""

    def __init__(self, network: httpcore2.NetworkBackend) -> None:
        self._network = network

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        failure: httpcore2.ConnectError | httpcore2.ConnectTimeout | None = None
        for address in _find_addresses(host, _limit_timeout(timeout, httpcore2.ConnectTimeout)):
            left = _limit_timeout(timeout, httpcore2.ConnectTimeout)
            try:
                return _PunctualStream(self._network.connect_tcp(address, port, left, local_address, socket_options))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        _NAMES.pop((os.getpid(), host), None)  # the host may have moved
        raise failure or httpcore2.ConnectError("getaddrinfo: the name has no address")

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.NetworkStream:
        left = _limit_timeout(timeout, httpcore2.ConnectTimeout)
        return _PunctualStream(self._network.connect_unix_socket(path, left, socket_options))

    def sleep(self, seconds: float) -> None:
        self._network.sleep(seconds)


class _PunctualStream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _limit_timeout(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _limit_timeout(timeout, httpcore2.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _PunctualStream(
            self._stream.start_tls(ssl_context, server_hostname, _limit_timeout(timeout, httpcore2.ConnectTimeout))
        )

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


# -- aiohttp ------------------------------------------------------------------------------------------------------


@cache
def has_aiohttp() -> bool:
    """Return whether aiohttp is installed; if it is not, log once what that costs."""
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        logging.getLogger("formal_llm").info(
            "aiohttp is not installed: requests that are awaited take more of the processor; "
            "pip install 'formal-llm[aiohttp]'"
        )
        return False
    return True


class _as_httpx:  # noqa: N801  # used like a function
    """Converts errors of aiohttp to those of httpx2, which the SDKs know; the transport misses some of them."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if not isinstance(error, Exception) or not has_aiohttp():
            return
        import aiohttp

        cause = error.__cause__ if isinstance(error, httpx2.TimeoutException) else error
        if isinstance(cause, aiohttp.ClientError) and not isinstance(cause, TimeoutError):
            raise httpx2.NetworkError(str(cause)) from cause
