"""The settings of adapters: keys and addresses from the environment, and the user's clients."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from formal_llm.errors import ProviderError

V = TypeVar("V")

#: The most characters of an address.
_LONGEST = 2_000


def from_environment(variable: str, default: str | None = None) -> str | None:
    """Return the value of an environment variable; an empty or blank value counts as not set."""
    return os.environ.get(variable, "").strip() or default


def checked_address(name: str, url: str, variable: str) -> str:
    """Return ``url`` if it is the address of a server.

    Raises:
        ProviderError: it is not; the message shows an example.
    """
    import httpx2  # installed with the SDKs

    try:
        httpx2.URL(url)
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        parts.hostname and parts.hostname.encode("idna")
    except (ValueError, httpx2.InvalidURL):  # also of a name that is no name of a host
        is_valid = False
    if not is_valid or len(url) > _LONGEST or any(not character.isprintable() or character == " " for character in url):
        raise ProviderError(
            f"{name}: {plain_address(url)[:100]!r} is no address of a server; "
            f"give one like http://localhost:8000/v1 as base_url or in {variable}"
        )
    return url


def plain_address(url: object) -> str:
    """Return ``url`` without user name, password, query and final slash, so that it may be shown and stored."""
    without_query = str(url).partition("?")[0].partition("#")[0]
    scheme, separator, rest = without_query.rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}".rstrip("/")


def either_client_or(clients: tuple[object, ...], **settings: object) -> None:
    """Raise ``ValueError`` if there is a client and also one of the settings that a client already has."""
    names = [name for name, value in settings.items() if value is not None]
    if names and any(client is not None for client in clients):
        raise ValueError(f"a client brings its own {', '.join(names)}; give one or the other")


def given(**values: object) -> dict[str, Any]:
    """Return the values that are not None, as arguments for a constructor of any types."""
    return {key: value for key, value in values.items() if value is not None}


def check_plain(client: object, *classes: type, own: object = None) -> None:
    """Check that a client can be created again from its settings, synchronous or asynchronous.

    The two attributes have no public name; ``tests/llms/hosted/test_sdks.py`` fails if they vanish.

    Raises:
        TypeError: the class is not one of the SDK's ``classes``, the HTTP client is a custom one, or ``own`` is true.
    """
    http = type(getattr(client, "_client", None)).__name__
    plain = ("SyncHttpxClientWrapper", "AsyncHttpxClientWrapper", "BoundedClient", "BoundedAsyncClient")
    if type(client) not in classes or http not in plain or own or getattr(client, "_middleware", None):
        raise TypeError(
            f"a {type(client).__name__} with settings of its own has no like; give both client and async_client"
        )


def list_own_headers(headers: Mapping[str, V], usual: Mapping[str, object]) -> dict[str, V]:
    """Return those of a client's headers that the user has set: a plain client has them not, or with other values."""
    own = {name: value for name, value in headers.items() if usual.get(name) != value}
    own.pop("X-Stainless-Async", None)  # differs between synchronous and asynchronous clients
    return own
