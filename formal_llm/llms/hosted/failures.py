"""What failed when a server was asked, and what to do about it, in the words of this library and of the server."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    UserError,
)

from formal_llm.errors import ProviderError, UnreadableResponse
from formal_llm.llms.hosted.wire import StreamCut, TooLarge

#: Statuses of failures that may pass, besides those from 500.
_PASSING = frozenset({408, 409, 429})
#: The words of network errors by which their reason is found, and the reason; the first one counts.
_REASONS = (
    (("refused",), "the connection was refused"),
    (("name or service", "nodename", "name resolution", "getaddrinfo", "gaierror", "idna"), "its name is not known"),
    (("certificate", "ssl", "tls"), "its certificate or its encryption was not accepted"),
    (("reset", "aborted", "broken pipe"), "the connection was reset"),
    (("disconnected", "closed", "incomplete", "eof"), "it closed the connection"),
    (("timeout", "timed out"), "no answer came in time"),
)


def find_status(error: BaseException) -> int | None:
    """Return the HTTP status of an error; None if it has none."""
    return error.status_code if isinstance(error, ModelHTTPError) else None


def find_wait(error: BaseException) -> float | None:
    """Return the seconds for which the server wants no other request, if it says so."""
    wait = error.retry_after if isinstance(error, ModelAPIError) else None
    return wait if wait is not None and math.isfinite(wait) and wait >= 0 else None


def may_pass(error: BaseException) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, ModelHTTPError):
        if isinstance(error, ModelQuotaExceededError) or error.provider_retry_hint is False:
            return False
        return error.status_code in _PASSING or error.status_code >= 500
    return isinstance(error, ModelConnectionError) and not any(
        isinstance(one, (StreamCut, TooLarge)) for one in _chain(error)
    )


def find_words(error: BaseException) -> str:
    """Return the server's own words."""
    body = getattr(error, "body", None)
    message: object = None
    while not message and isinstance(body, dict):
        message = body.get("message") or body.get("detail")
        body = body.get("error")
    message = message or (body if isinstance(body, str) else None)
    return " ".join(str(message or error)[:5000].split())


def describe_failure(
    error: Exception, key: str, url: str, place: str, deadline: float
) -> tuple[type[ProviderError], str]:
    """Return the class and the message of our error for one of pydantic-ai, or of reading what came back.

    Args:
        error: the error.
        key: the variable with the key, or what stands for it.
        url: likewise of the address.
        place: the address of the server.
        deadline: the seconds that a question may take.
    """
    status, words = find_status(error), find_words(error)[:300]
    if isinstance(error, TimeoutError):
        return ProviderError, (
            f"no whole answer came within {deadline:g} seconds, all tries together; try again, or give a longer "
            f"deadline (the server is {place})"
        )
    for one in _chain(error):
        if isinstance(one, TooLarge):
            return ProviderError, f"{one}; check the address, or give more max_bytes (the server is {place})"
        if isinstance(one, StreamCut):
            return UnreadableResponse, f"{one} (the server is {place})"
    if status is not None:
        return ProviderError, f"{_describe_status(error, status, key, url, deadline)} (status {status}: {words})"
    if isinstance(error, ModelConnectionError):
        # Its text is not shown: it may quote the request's headers, including the key.
        seen = " ".join(f"{type(one).__name__} {one}" for one in _chain(error)).casefold().replace("ssl:default", "")
        reason = next((f": {why}" for marks, why in _REASONS if any(mark in seen for mark in marks)), "")
        return (
            ProviderError,
            f"the server at {place} cannot be reached, or it hung up{reason}; check the network and {url}",
        )
    if isinstance(error, UserError):
        return ProviderError, f"the request could not be made: {words}"
    if isinstance(error, ModelAPIError) and error.body is not None:
        return ProviderError, f"the server at {place} reported an error: {words}"
    kind = type(error).__name__
    return (
        UnreadableResponse,
        f"what came back from {place} cannot be read ({kind}: {words[:120]}); check {url} and {key}",
    )


def _describe_status(error: Exception, status: int, key: str, url: str, deadline: float) -> str:
    wait, lowered = find_wait(error), find_words(error).casefold()
    too_long = f"it asks to wait {min(wait or 0, 1e9):,.0f} seconds, of a deadline of {deadline:g}; try again later"
    if isinstance(error, ModelContextWindowExceededError) or (
        status in (400, 413, 422) and any(mark in lowered for mark in ("context length", "context window", "too long"))
    ):
        return "the request is longer than the model can read; shorten it, or take a model with a larger context"
    if status == 402 or isinstance(error, ModelQuotaExceededError):
        return "the account has no credit left for this; pay, or take another key"
    if status in (401, 403):
        return f"the key was refused for this model; check {key}"
    if status == 404:
        return f"there is no such model or no such address; check the name of the model and {url}"
    if status == 429:
        return f"too many requests; {too_long if wait else 'wait, or give more max_retries'}"
    if status >= 500:
        return f"the server failed, again and again; {too_long if wait else 'try again later'}"
    return "the request was refused; the model must know structured output for choices, and tools for tools"


def _chain(error: BaseException) -> Iterator[BaseException]:
    below: BaseException | None = error
    for _ in range(20):
        if below is None:
            return
        yield below
        below = below.__cause__ or below.__context__
